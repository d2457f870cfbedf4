/** The script's last part: command line, web page, trying it out, documentation. */
import {
  bash,
  edit,
  failing,
  grep,
  list,
  patch,
  read,
  withProcess,
  type ScriptStep,
} from "../script-step.ts";
import { NO_ORIGIN_CHECK, ORIGIN_NOT_ASKED, put, putFlawed, test } from "./app-files.ts";
import { todo } from "./todo-list.ts";

const CHECK_LINES = NO_ORIGIN_CHECK.right.trimEnd().split("\n");

/** Waits until the page answers: a server needs a moment, and a fixed pause is either too long or too short. */
const LOOK_AT_PAGE = [
  "const page = async (left) => {",
  "  try { return await (await fetch('http://127.0.0.1:8123/')).text(); }",
  "  catch (error) { if (left === 0) throw error; await new Promise((go) => setTimeout(go, 100)); return page(left - 1); }",
  "};",
  "page(50).then((html) => console.log(html.replace(/<style>[^]*<.style>/, '').replace(/<[^>]+>/g, ' ').trim()));",
].join("\n");

/** An installation that exits without an error where none is possible: the rehearsal also runs offline. */
const installed = (command: string): string =>
  `${command} > /tmp/install.log 2>&1 || { echo "No package registry answers in this sandbox, so this look is left out."; exit 0; }`;

const CHECK_CARDS =
  'import json, fastjsonschema; fastjsonschema.validate({"type": "object", "required": ["cards"]}, json.load(open("/tmp/demo.json"))); print("fastjsonschema finds the cards in the file")';

export const LAST_STEPS: readonly ScriptStep[] = [
  {
    text: "The command line begins with its arguments and with the review at the prompt.",
    calls: [put("src/args.js"), put("src/review.js")],
    decision:
      "Exit codes: 0 done, 1 failed, 2 wrongly called. RECALL_FILE and RECALL_TODAY set file and day.",
  },
  { text: "The commands that work on cards.", calls: [put("src/commands.js")] },
  { text: "The commands that touch files or open a port.", calls: [put("src/file-commands.js")] },
  {
    text: "The frame around them: load, run, save when something changed, turn errors into words.",
    calls: [put("src/cli.js"), put("bin/recall.js")],
  },
  {
    text: "The pages of the browser view, where everything from a card is escaped.",
    calls: [put("src/page.js")],
  },
  {
    text: "And the small server over the same file, on this machine only.",
    calls: [putFlawed(ORIGIN_NOT_ASKED, NO_ORIGIN_CHECK)],
    decision: "The web page listens on 127.0.0.1 only and escapes every card.",
  },
  { text: "Tests of the command line, from adding a card to exit codes.", calls: [put("test/cli.test.js")] },
  { text: "I run the command line's tests.", calls: [test("cli")] },
  {
    text: "Those pass. For the server I also test that another site cannot send answers to it.",
    reasoning:
      "A form on any web page could post to 127.0.0.1. The Origin header tells; without a check this test must fail.",
    calls: [put("test/server.test.js")],
  },
  {
    text: "I run the server's tests; the foreign page should still get through.",
    calls: [failing(test("server"))],
  },
  {
    text: "As feared, a foreign form is taken. A patch in two places adds the check.",
    calls: [
      patch(
        "*** Update File: src/server.js",
        "@@",
        '   if (route === "POST /answer") {',
        "+    checkOrigin(request);",
        "     const form = new URLSearchParams(await readBody(request));",
        "@@",
        '   throw Object.assign(new Error("There is no such page."), { status: 404 });',
        " }",
        " ",
        ...CHECK_LINES.map((line) => `+${line}`),
        "+",
        " async function readBody(request) {",
      ),
    ],
    resolved: "Other sites could post answers to the local server: it checks the Origin header.",
  },
  { text: "The server's tests after the patch.", calls: [test("server")] },
  {
    text: "Good. I commit the two ways to use it.",
    calls: [
      todo(8),
      bash('git add -A && git commit -qm "Add the command line and the web page" && git log --oneline'),
    ],
  },
  {
    text: "Now as a person would use it: I import the example and leave the page running in the background.",
    calls: [
      {
        name: "bash",
        input: {
          command:
            "export RECALL_FILE=/tmp/demo.json; rm -f $RECALL_FILE; " +
            "node bin/recall.js import examples/spanish.csv --deck Spanish && exec node bin/recall.js serve --port 8123",
          background: true,
        },
      },
    ],
  },
  {
    text: "Does the page answer, and what does it say?",
    calls: [{ name: "bash", input: { command: `node -e "${LOOK_AT_PAGE}"`, timeout_seconds: 20 } }],
  },
  {
    text: "Five cards wait. What did the server itself say?",
    calls: [withProcess("bash_output"), bash("head -n 30 /tmp/demo.json")],
  },
  { text: "The page has done its part; I end the server.", calls: [withProcess("kill_process")] },
  {
    text: "The same review now at the prompt, with answers from a pipe.",
    calls: [
      bash(
        "export RECALL_FILE=/tmp/demo.json; printf '\\n3\\n\\n1\\n\\nu\\n\\n4\\nq\\n' | node bin/recall.js review && node bin/recall.js stats",
      ),
    ],
  },
  {
    text: "Cards from a text, by rules, and the queries.",
    calls: [
      bash(
        "export RECALL_FILE=/tmp/demo.json; node bin/recall.js generate examples/photosynthesis.txt --deck Biology --yes && " +
          'node bin/recall.js list tag:generated && node bin/recall.js list "deck:spanish -tag:verb"',
      ),
    ],
  },
  {
    text: "What happens when it is called wrongly, or its file is damaged?",
    calls: [
      bash(
        "node bin/recall.js fly; echo \"exit $?\"; echo '{' > /tmp/broken.json; " +
          'RECALL_FILE=/tmp/broken.json node bin/recall.js list; echo "exit $?"; cat /tmp/broken.json',
      ),
    ],
  },
  {
    text: "Clear words and the right exit codes. I read the commands once more with fresh eyes, and look for left-overs.",
    calls: [
      read("src/commands.js", 1, 60),
      grep("TODO|FIXME|console\\.log", "src"),
      grep("\\.only\\(", "test"),
    ],
  },
  {
    text: "One thing to improve there: a card's line should say so when it is new.",
    calls: [
      edit(
        "src/commands.js",
        '  const state = card.suspended ? "suspended" : `due ${card.schedule.due}`;',
        '  const state = card.suspended ? "suspended" : `${isNew(card) ? "new, " : ""}due ${card.schedule.due}`;',
      ),
      edit(
        "src/commands.js",
        'import { searchCards } from "./search.js";',
        'import { isNew, searchCards } from "./search.js";',
      ),
    ],
  },
  { text: "The command line's tests have an opinion on that.", calls: [failing(test("cli"))] },
  {
    text: "They pin the line's form, which other programs may read. The tests are right: I take the change back.",
    calls: [bash("git checkout -- src/commands.js && git status --short")],
    resolved: "A nicer card line broke the pinned output format: taken back.",
  },
  {
    text: "Two looks with other people's tools, if a package registry answers: one of npm over the sources, one of pip over the file of cards.",
    calls: [
      bash(
        `${installed("npm install --prefix /tmp/npm --no-audit --no-fund --fetch-retries 0 --fetch-timeout 10000 acorn@8")} && ` +
          'for file in $(git ls-files "*.js"); do /tmp/npm/node_modules/.bin/acorn --module --ecma2022 --allow-hash-bang --silent "$file" || exit 1; done && echo "acorn reads every file"',
      ),
      bash(
        `${installed("{ python3 -m venv /tmp/pip && /tmp/pip/bin/pip install -q --retries 0 --timeout 10 fastjsonschema; }")} && ` +
          `/tmp/pip/bin/python -c '${CHECK_CARDS}'`,
      ),
    ],
  },
  { text: "Now the papers: how to use it, how it schedules, where things are.", calls: [put("README.md")] },
  {
    text: "I check that the README's table names files that exist.",
    calls: [
      bash("grep -o 'src/[a-z0-9-]*\\.js' README.md | sort -u | xargs ls -l"),
      { name: "glob_files", input: { pattern: "**/*.js" } },
      list("src"),
    ],
  },
  {
    text: "The whole test run, as the README has it, and the size of it all.",
    calls: [
      bash(
        'node --test > /tmp/test.log 2>&1; code=$?; tail -n 9 /tmp/test.log; echo "exit $code"; exit $code',
      ),
      bash("wc -l src/*.js src/generator/*.js bin/*.js test/*.js | tail -n 1"),
    ],
  },
  {
    text: "Everything passes. The last commit.",
    calls: [
      todo(10),
      bash('git add -A && git commit -qm "Add the README" && git log --oneline && git status --short'),
    ],
  },
];

export const CLOSING_TEXT = [
  "The flashcard application is ready, and its 63 tests pass in this sandbox.",
  "",
  "This was the **rehearsal model**: it played a written script, but every file, command and test run was real. Set",
  "OPENAI_API_KEY (and OPENAI_BASE_URL for another server) to have a real model work on a task of yours.",
  "",
  "What there is: SM-2 scheduling checked against known values, decks, cards and a query language, review sessions with",
  "undo, a JSON file with atomic writes, CSV import and export, statistics, a card generator behind an interface (by",
  "rules offline, or by a language model), a command line and a small web page.",
  "",
  "To run it, in the folder of its files (Node 18 or newer, nothing to install):",
  "",
  "    node --test",
  "    node bin/recall.js import examples/spanish.csv --deck Spanish",
  "    node bin/recall.js review",
  "    node bin/recall.js serve",
].join("\n");
