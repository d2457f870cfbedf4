/** The script's first part: package, scheduling, cards, search, store, sessions, CSV, statistics, the card generator. */
import { bashCall, edit, failing, grep, list, read, type ScriptStep, patch } from "../script-step.ts";
import {
  NO_LOWEST_FACTOR,
  put,
  putFlawed,
  TEMPORARY_FILE_STAYS,
  test,
  todoCall,
  NEW_CARDS_NOT_COUNTED,
  NO_DOUBLED_QUOTE,
  STREAK_ENDS_AT_MIDNIGHT,
} from "./app-files.ts";

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
  {
    text: "Now review sessions: overdue cards first, then new cards up to a daily limit, with undo for answers.",
    calls: [putFlawed(NEW_CARDS_NOT_COUNTED)],
    decision: "Sessions: overdue first, 20 new cards a day, 'again' returns in the same session, undo.",
  },
  { text: "Tests for the sessions.", calls: [put("test/session.test.js")] },
  { text: "Run the session tests.", calls: [failing(test("session"))] },
  {
    text: "A second session on the same day shows more new cards than the limit. I'll count those already shown.",
    calls: [
      failing(
        edit(
          NEW_CARDS_NOT_COUNTED.path,
          "  const fresh = cards.filter((card) => isNew(card)).slice(0, newLimit);",
          NEW_CARDS_NOT_COUNTED.right,
        ),
      ),
    ],
  },
  {
    text: "I quoted that line from memory and got it wrong. Let me read the real one.",
    calls: [read("src/session.js", 8, 12), grep("isNew", "src")],
  },
  {
    text: "With the actual line, the edit applies.",
    calls: [edit(NEW_CARDS_NOT_COUNTED.path, NEW_CARDS_NOT_COUNTED.wrong, NEW_CARDS_NOT_COUNTED.right)],
    resolved:
      "A second session exceeded the daily limit of new cards: planSession counts the first answers of the day.",
  },
  { text: "Run all tests so far.", calls: [bashCall("node --test")] },
  {
    text: "All green. I'll commit the sessions and the store.",
    calls: [
      bashCall('git add -A && git commit -qm "Add the store and review sessions" && git log --oneline'),
    ],
  },
  {
    text: "Import needs a CSV reader that follows RFC 4180, with tests for the edge cases.",
    calls: [putFlawed(NO_DOUBLED_QUOTE), put("test/csv.test.js")],
    decision: "CSV by RFC 4180, also tabs, byte order mark, bare line feeds.",
  },
  { text: "Run the CSV tests.", calls: [failing(test("csv"))] },
  {
    text: "Doubled quotes inside a field are not handled. A patch adds the missing case.",
    calls: [
      patch(
        "*** Update File: src/csv.js",
        "@@",
        "     if (quoted) {",
        "       if (char !== '\"') field += char;",
        "+      else if (input[at + 1] === '\"') field += input[++at];",
        "       else quoted = false;",
      ),
    ],
    resolved: "CSV lost doubled quotes: the reader now reads two quotes as one.",
  },
  { text: "Run the CSV tests again.", calls: [test("csv")] },
  {
    text: "On top of that: import and export of cards, and an example file as other programs write it.",
    calls: [put("src/transfer.js"), put("examples/spanish.csv")],
  },
  { text: "Tests for import and export.", calls: [put("test/transfer.test.js")] },
  {
    text: "Run them, and check the example's line endings byte by byte.",
    calls: [test("transfer"), bashCall("head -c 120 examples/spanish.csv | od -c | head -n 8")],
  },
  {
    text: "Statistics: counts by state, retention, streak and forecast, and their text output for a terminal.",
    calls: [putFlawed(STREAK_ENDS_AT_MIDNIGHT), put("src/stats-text.js")],
    decision: "Retention ignores first answers: they only show what was known before.",
  },
  { text: "Tests for the statistics.", calls: [put("test/stats.test.js")] },
  { text: "Run the statistics tests.", calls: [failing(test("stats"))] },
  {
    text: "The streak breaks every morning, before any review. Today must not count against it yet.",
    calls: [edit(STREAK_ENDS_AT_MIDNIGHT.path, STREAK_ENDS_AT_MIDNIGHT.wrong, STREAK_ENDS_AT_MIDNIGHT.right)],
    resolved: "The streak broke in the morning: a day that is not over counts only if it has answers.",
  },
  { text: "Run the statistics tests again.", calls: [test("stats")] },
  {
    text: "They pass. I'll update the plan and commit.",
    calls: [
      todoCall(6),
      bashCall('git add -A && git commit -qm "Add CSV and statistics" && git show --stat --oneline'),
    ],
  },
  {
    text: "The card generator. First the rule-based one, which works offline and invents nothing.",
    calls: [put("src/generator/rules.js"), put("examples/photosynthesis.txt")],
    decision: "A generator is {name, generate(text, {count, signal})}; drafts() checks whatever comes back.",
  },
  {
    text: "Then the one that asks a language model. fetch is passed in, so its tests need no network.",
    calls: [put("src/generator/openai.js")],
  },
  {
    text: "Both sit behind one interface, which checks what they return.",
    calls: [put("src/generator/generator.js")],
  },
  { text: "Tests for both generators and for those checks.", calls: [put("test/generator.test.js")] },
  { text: "Run the generator tests.", calls: [test("generator")] },
];
