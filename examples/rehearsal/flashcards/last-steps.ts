/** The script's last part: command line, web page, trying it out, documentation; and the whole script. */
import { FIRST_STEPS } from "./first-steps.ts";
import {
  bashCall,
  edit,
  failing,
  grep,
  list,
  patch,
  read,
  withProcess,
  type ScriptStep,
} from "../script-step.ts";
import { NO_ORIGIN_CHECK, ORIGIN_NOT_ASKED, put, putFlawed, test, todoCall } from "./app-files.ts";

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
  `${command} > /tmp/install.log 2>&1 || { echo "No package registry is reachable from this sandbox, so this check is skipped."; exit 0; }`;

const CHECK_CARDS =
  'import json, fastjsonschema; fastjsonschema.validate({"type": "object", "required": ["cards"]}, json.load(open("/tmp/demo.json"))); print("fastjsonschema finds the cards in the file")';

const LAST_STEPS: readonly ScriptStep[] = [
  {
    text: "The command line starts with argument parsing and the interactive review.",
    calls: [put("src/args.js"), put("src/review.js")],
    decision:
      "Exit codes: 0 success, 1 failure, 2 wrong usage. RECALL_FILE and RECALL_TODAY set the file and the day.",
  },
  { text: "Next: the commands that work on cards.", calls: [put("src/commands.js")] },
  { text: "Then the commands that touch files or open a port.", calls: [put("src/file-commands.js")] },
  {
    text: "The frame around them: load, run, save if something changed, and turn errors into messages.",
    calls: [put("src/cli.js"), put("bin/recall.js")],
  },
  {
    text: "The pages of the browser view, where everything from a card is escaped.",
    calls: [put("src/page.js")],
  },
  {
    text: "And a small server for the same file, on this machine only.",
    calls: [putFlawed(ORIGIN_NOT_ASKED, NO_ORIGIN_CHECK)],
    decision: "The web page listens on 127.0.0.1 only and escapes every card.",
  },
  { text: "Tests for the command line, from adding a card to exit codes.", calls: [put("test/cli.test.js")] },
  { text: "Run the command-line tests.", calls: [test("cli")] },
  {
    text: "Those pass. For the server, I'll also test that another site cannot send answers to it.",
    reasoning:
      "A form on any web page could post to 127.0.0.1. The Origin header shows that; without a check this test must fail.",
    calls: [put("test/server.test.js")],
  },
  {
    text: "Run the server tests. The foreign page should still get through.",
    calls: [failing(test("server"))],
  },
  {
    text: "As expected, a foreign form is accepted. A patch in two places adds the check.",
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
    resolved: "Other sites could post answers to the local server: it now checks the Origin header.",
  },
  { text: "Run the server tests after the patch.", calls: [test("server")] },
  {
    text: "Good. I'll commit both ways to use it.",
    calls: [
      todoCall(8),
      bashCall('git add -A && git commit -qm "Add the command line and the web page" && git log --oneline'),
    ],
  },
  {
    text: "Now I'll use it as a person would: import the example and run the web page in the background.",
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
    text: "Does the page respond, and what does it show?",
    calls: [{ name: "bash", input: { command: `node -e "${LOOK_AT_PAGE}"`, timeout_seconds: 20 } }],
  },
  {
    text: "Five cards are due. What did the server print?",
    calls: [withProcess("bash_output"), bashCall("head -n 30 /tmp/demo.json")],
  },
  { text: "The page works, so I'll stop the server.", calls: [withProcess("kill_process")] },
  {
    text: "Before the other commands, a look at what they run through. That is long, and hardly needed again.",
    calls: [
      read("src/commands.js"),
      read("src/file-commands.js"),
      read("src/server.js"),
      read("src/cards.js"),
      read("src/session.js"),
      read("src/store.js"),
      read("src/page.js"),
    ],
  },
  {
    text: "The same review at the prompt, with answers from a pipe.",
    calls: [
      bashCall(
        "export RECALL_FILE=/tmp/demo.json; printf '\\n3\\n\\n1\\n\\nu\\n\\n4\\nq\\n' | node bin/recall.js review && node bin/recall.js stats",
      ),
    ],
  },
  {
    text: "Now rule-based cards from a text, and the queries.",
    calls: [
      bashCall(
        "export RECALL_FILE=/tmp/demo.json; node bin/recall.js generate examples/photosynthesis.txt --deck Biology --yes && " +
          'node bin/recall.js list tag:generated && node bin/recall.js list "deck:spanish -tag:verb"',
      ),
    ],
  },
  {
    text: "What happens with wrong usage, or with a damaged file?",
    calls: [
      bashCall(
        "node bin/recall.js fly; echo \"exit $?\"; echo '{' > /tmp/broken.json; " +
          'RECALL_FILE=/tmp/broken.json node bin/recall.js list; echo "exit $?"; cat /tmp/broken.json',
      ),
    ],
  },
  {
    text: "Clear messages and the right exit codes. I'll review the commands once more and look for leftovers.",
    calls: [
      read("src/commands.js", 1, 60),
      grep("TODO|FIXME|console\\.log", "src"),
      grep("\\.only\\(", "test"),
    ],
  },
  {
    text: "One improvement: a card's line should say if the card is new.",
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
  { text: "Do the command-line tests accept that?", calls: [failing(test("cli"))] },
  {
    text: "They pin the line's format, which other programs may parse. The tests are right: I'll revert the change.",
    calls: [bashCall("git checkout -- src/commands.js && git status --short")],
    resolved: "A nicer card line broke the pinned output format: reverted.",
  },
  {
    text: "Two checks with other tools, if a package registry is reachable: one from npm for the sources, one from pip for the file of cards.",
    calls: [
      bashCall(
        `${installed("npm install --prefix /tmp/npm --no-audit --no-fund --fetch-retries 0 --fetch-timeout 10000 acorn@8")} && ` +
          'for file in $(git ls-files "*.js"); do /tmp/npm/node_modules/.bin/acorn --module --ecma2022 --allow-hash-bang --silent "$file" || exit 1; done && echo "acorn reads every file"',
      ),
      bashCall(
        `${installed("{ python3 -m venv /tmp/pip && /tmp/pip/bin/pip install -q --retries 0 --timeout 10 fastjsonschema; }")} && ` +
          `/tmp/pip/bin/python -c '${CHECK_CARDS}'`,
      ),
    ],
  },
  {
    text: "Now the README: how to use it, how it schedules, and where things are.",
    calls: [put("README.md")],
  },
  {
    text: "Check that the files in the README's table exist.",
    calls: [
      bashCall("grep -o 'src/[a-z0-9-]*\\.js' README.md | sort -u | xargs ls -l"),
      { name: "glob_files", input: { pattern: "**/*.js" } },
      list("src"),
    ],
  },
  {
    text: "Run all tests as the README says, and count the lines.",
    calls: [
      bashCall(
        'node --test > /tmp/test.log 2>&1; code=$?; tail -n 9 /tmp/test.log; echo "exit $code"; exit $code',
      ),
      bashCall("wc -l src/*.js src/generator/*.js bin/*.js test/*.js | tail -n 1"),
    ],
  },
  {
    text: "Everything passes. Time for the last commit.",
    calls: [
      todoCall(10),
      bashCall('git add -A && git commit -qm "Add the README" && git log --oneline && git status --short'),
    ],
  },
];

const CLOSING_TEXT = [
  "The flashcard application is ready, and its 63 tests pass in this sandbox.",
  "",
  "This was the **rehearsal model**: it played a written script, but every file, command and test run was real. Set",
  "OPENAI_API_KEY (and OPENAI_BASE_URL for another server) to have a real model work on a task of yours.",
  "",
  "It has SM-2 scheduling checked against known values, decks, cards and a query language, review sessions with",
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

export const FLASHCARDS: readonly ScriptStep[] = [
  ...FIRST_STEPS,
  ...LAST_STEPS,
  { text: CLOSING_TEXT, calls: [] },
];
