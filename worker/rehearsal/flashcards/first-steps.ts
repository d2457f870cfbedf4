/** The script's first part: package, scheduling, cards, search, store. */
import { bash, edit, failing, grep, list, read, type ScriptStep } from "../script-step.ts";
import { NO_LOWEST_FACTOR, put, putFlawed, TEMPORARY_FILE_STAYS, test } from "./app-files.ts";
import { todo } from "./todo-list.ts";

export const FIRST_STEPS: readonly ScriptStep[] = [
  {
    text: "I plan the work and look at what is there.",
    reasoning:
      "A flashcard application: scheduling first, because all else stands on it; pure modules, then files, then the command line and a page.",
    calls: [todo(0), list()],
    decision: "Pure modules in src/, effects only in store.js, cli.js and server.js; no dependencies.",
  },
  {
    text: "Which tools does this sandbox have?",
    calls: [bash("node --version; git --version; python3 --version; rg --version | head -n 1; uname -sr")],
  },
  {
    text: "Node and git are here. I lay down the package and what git should not see.",
    calls: [put("package.json"), put(".gitignore")],
    decision: "Node 24 with its own test runner (node --test), ES modules.",
  },
  {
    text: "From the start everything goes under version control.",
    calls: [
      bash(
        "git init -q -b main && git config user.name Rehearsal && git config user.email rehearsal@localhost && " +
          'git add -A && git commit -qm "Begin the package" && git log --oneline',
      ),
    ],
  },
  {
    text: "Scheduling counts in whole days, so days come first, with their tests.",
    calls: [put("src/days.js"), put("test/days.test.js")],
    decision: "A day is an ISO date in UTC: sorts as text, knows no summer time.",
  },
  { text: "I run the day tests.", calls: [test("days")] },
  {
    text: "Now the heart of it: SM-2 as a pure function of schedule, quality and day.",
    reasoning:
      "EF' = EF + (0.1 - (5-q)(0.08 + (5-q)0.02)); intervals 1, 6, then times EF, rounded up; below 3 the repetitions start again and the factor stays.",
    calls: [putFlawed(NO_LOWEST_FACTOR)],
    decision: "SM-2: 1, 6, then ceil(interval × new factor); a wrong answer leaves the factor alone.",
  },
  {
    text: "Known values keep the scheduler honest: quality 4 must give 1, 6, 15, 38 and 95 days.",
    calls: [put("test/sm2.test.js")],
  },
  { text: "Do the known values come out?", calls: [failing(test("sm2"))] },
  {
    text: "The intervals are right, but the factor falls below 1.3 after many hard answers. I look at the place.",
    calls: [read("src/sm2.js", 52, 12), grep("LOWEST_FACTOR", "src")],
  },
  {
    text: "The lower limit was declared and never used. One line puts that right.",
    calls: [edit(NO_LOWEST_FACTOR.path, NO_LOWEST_FACTOR.wrong, NO_LOWEST_FACTOR.right)],
    resolved: "SM-2's factor fell below 1.3: nextFactor now applies LOWEST_FACTOR.",
  },
  { text: "The SM-2 tests once more.", calls: [test("sm2")] },
  {
    text: "All eight pass. I commit the scheduler.",
    calls: [bash('git add -A && git commit -qm "Schedule by SM-2" && git status --short | wc -l')],
  },
  {
    text: "Next are decks and cards, as plain data that is never changed in place.",
    calls: [put("src/cards.js")],
    decision: "Collections are immutable values, so undo keeps the one before.",
  },
  { text: "Their tests: numbers, tags, doubles, limits.", calls: [put("test/cards.test.js")] },
  { text: "I run the card tests.", calls: [test("cards")] },
  {
    text: "Cards hold. The search language comes next: tags, decks, states, and a minus to turn a term round.",
    calls: [put("src/search.js")],
    decision: "Query language: words, tag:, deck:, is:due|new|suspended|leech, minus negates.",
  },
  {
    text: "Tests for the queries; meanwhile I check that nothing pure asks the clock.",
    calls: [put("test/search.test.js"), grep("Date\\.now|new Date\\(\\)", "src")],
  },
  { text: "I run the search tests and everything before them.", calls: [bash("node --test")] },
  {
    text: "Four files of tests pass. I note where I am and commit.",
    calls: [todo(3), bash('git add -A && git commit -qm "Add cards and search" && git log --oneline')],
  },
  {
    text: "The store writes to a new file and renames it, so that a crash leaves the old content whole.",
    reasoning:
      "Write, sync, rename. The name of the temporary file must be unique, or two writers would share it.",
    calls: [putFlawed(TEMPORARY_FILE_STAYS)],
    decision: "Atomic writes: temporary file, fsync, rename; damaged files are refused and left alone.",
  },
  {
    text: "Its tests go for what can go wrong: damage, newer versions, a failing write, twenty writers at once.",
    calls: [put("test/store.test.js")],
  },
  { text: "Does the store stand up to that?", calls: [failing(test("store"))] },
  {
    text: "A write that fails leaves its temporary file behind. I read the function again.",
    calls: [read("src/store.js", 38, 22)],
  },
  {
    text: "The error path must remove the temporary file before it reports.",
    calls: [edit(TEMPORARY_FILE_STAYS.path, TEMPORARY_FILE_STAYS.wrong, TEMPORARY_FILE_STAYS.right)],
    resolved: "A failed save left a temporary file: save() removes it in its error path.",
  },
  {
    text: "The store's tests again, and what changed since the last commit.",
    calls: [test("store"), bash("git status --short")],
  },
];
