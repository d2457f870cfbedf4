/** The script's first part: package, scheduling, cards, search, store. */
import { bashCall, edit, failing, grep, list, read, type ScriptStep } from "../script-step.ts";
import { NO_LOWEST_FACTOR, put, putFlawed, TEMPORARY_FILE_STAYS, test, todoCall } from "./app-files.ts";

export const FIRST_STEPS: readonly ScriptStep[] = [
  {
    text: "I'll plan the work and see what is already here.",
    reasoning:
      "A flashcard application. Scheduling comes first, because everything else depends on it: pure modules, then storage, then the command line and a web page.",
    calls: [todoCall(0), list()],
    decision: "Pure modules in src/, effects only in store.js, cli.js and server.js; no dependencies.",
  },
  {
    text: "Which tools does this sandbox have?",
    calls: [
      bashCall("node --version; git --version; python3 --version; rg --version | head -n 1; uname -sr"),
    ],
  },
  {
    text: "Node and git are available. I'll create the package and a .gitignore.",
    calls: [put("package.json"), put(".gitignore")],
    decision: "Node 24 with its own test runner (node --test), ES modules.",
  },
  {
    text: "Everything goes under version control from the start.",
    calls: [
      bashCall(
        "git init -q -b main && git config user.name Rehearsal && git config user.email rehearsal@localhost && " +
          'git add -A && git commit -qm "Begin the package" && git log --oneline',
      ),
    ],
  },
  {
    text: "Scheduling works in whole days, so I'll write the date functions first, with tests.",
    calls: [put("src/days.js"), put("test/days.test.js")],
    decision: "A day is an ISO date in UTC: it sorts as text and has no daylight saving time.",
  },
  { text: "Run the date tests.", calls: [test("days")] },
  {
    text: "Now the core: SM-2 as a pure function of schedule, answer quality and day.",
    reasoning:
      "EF' = EF + (0.1 - (5-q)(0.08 + (5-q)0.02)); intervals 1, 6, then times EF, rounded up; below quality 3 the repetitions start again and the factor stays.",
    calls: [putFlawed(NO_LOWEST_FACTOR)],
    decision: "SM-2: 1, 6, then ceil(interval × new factor); a wrong answer does not change the factor.",
  },
  {
    text: "I'll check the scheduler against known values: quality 4 must give 1, 6, 15, 38 and 95 days.",
    calls: [put("test/sm2.test.js")],
  },
  { text: "Does it produce the known values?", calls: [failing(test("sm2"))] },
  {
    text: "The intervals are right, but after many hard answers the factor falls below 1.3. Let me look at that code.",
    calls: [read("src/sm2.js", 52, 12), grep("LOWEST_FACTOR", "src")],
  },
  {
    text: "The lower limit is declared but never used. One line fixes that.",
    calls: [edit(NO_LOWEST_FACTOR.path, NO_LOWEST_FACTOR.wrong, NO_LOWEST_FACTOR.right)],
    resolved: "SM-2's factor fell below 1.3: nextFactor now applies LOWEST_FACTOR.",
  },
  { text: "Run the SM-2 tests again.", calls: [test("sm2")] },
  {
    text: "All eight pass. I'll commit the scheduler.",
    calls: [bashCall('git add -A && git commit -qm "Schedule by SM-2" && git status --short | wc -l')],
  },
  {
    text: "Next: decks and cards, as plain data that is never changed in place.",
    calls: [put("src/cards.js")],
    decision: "Collections are immutable values, so undo only has to keep the previous one.",
  },
  { text: "Tests for cards: numbers, tags, duplicates, limits.", calls: [put("test/cards.test.js")] },
  { text: "Run the card tests.", calls: [test("cards")] },
  {
    text: "Cards work. Next is the search language: tags, decks, states, and a minus sign that negates a term.",
    calls: [put("src/search.js")],
    decision: "Query language: words, tag:, deck:, is:due|new|suspended|leech, minus negates.",
  },
  {
    text: "Tests for the queries. I'll also check that no pure module reads the clock.",
    calls: [put("test/search.test.js"), grep("Date\\.now|new Date\\(\\)", "src")],
  },
  { text: "Run the search tests and all earlier ones.", calls: [bashCall("node --test")] },
  {
    text: "Four test files pass. I'll update the plan and commit.",
    calls: [
      todoCall(3),
      bashCall('git add -A && git commit -qm "Add cards and search" && git log --oneline'),
    ],
  },
  {
    text: "The store writes to a new file and renames it, so a crash leaves the old content intact.",
    reasoning: "Write, sync, rename. The temporary file needs a unique name, or two writers would share it.",
    calls: [putFlawed(TEMPORARY_FILE_STAYS)],
    decision: "Atomic writes: temporary file, fsync, rename; damaged files are refused and not touched.",
  },
  {
    text: "Tests for what can go wrong: damaged files, newer versions, a failing write, twenty writers at once.",
    calls: [put("test/store.test.js")],
  },
  { text: "Does the store survive that?", calls: [failing(test("store"))] },
  {
    text: "A failed write leaves its temporary file behind. I'll read the function again.",
    calls: [read("src/store.js", 38, 22)],
  },
  {
    text: "The error path must remove the temporary file before it reports the error.",
    calls: [edit(TEMPORARY_FILE_STAYS.path, TEMPORARY_FILE_STAYS.wrong, TEMPORARY_FILE_STAYS.right)],
    resolved: "A failed save left a temporary file: save() removes it in its error path.",
  },
  {
    text: "Run the store tests again, and see what changed since the last commit.",
    calls: [test("store"), bashCall("git status --short")],
  },
];
