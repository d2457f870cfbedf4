/** The script's second part: sessions, CSV, statistics, the card generator. */
import { bash, edit, failing, grep, patch, read, type ScriptStep } from "../script-step.ts";
import {
  NEW_CARDS_NOT_COUNTED,
  NO_DOUBLED_QUOTE,
  put,
  putFlawed,
  STREAK_ENDS_AT_MIDNIGHT,
  test,
} from "./app-files.ts";
import { todo } from "./todo-list.ts";

export const MIDDLE_STEPS: readonly ScriptStep[] = [
  {
    text: "Now review sessions: what is overdue first, then new cards up to a daily limit, and a way to take answers back.",
    calls: [putFlawed(NEW_CARDS_NOT_COUNTED)],
    decision: "Sessions: overdue first, 20 new cards a day, 'again' comes back in the same sitting, undo.",
  },
  { text: "Tests for the sessions.", calls: [put("test/session.test.js")] },
  { text: "I run the session tests.", calls: [failing(test("session"))] },
  {
    text: "A second sitting on the same day shows new cards beyond the limit. I count those already shown.",
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
    text: "I quoted that line from memory, and wrongly. I look at the real one.",
    calls: [read("src/session.js", 8, 12), grep("isNew", "src")],
  },
  {
    text: "With the line as it stands, the edit fits.",
    calls: [edit(NEW_CARDS_NOT_COUNTED.path, NEW_CARDS_NOT_COUNTED.wrong, NEW_CARDS_NOT_COUNTED.right)],
    resolved:
      "A second sitting exceeded the daily limit of new cards: planSession counts first answers of the day.",
  },
  { text: "All tests so far, in one run.", calls: [bash("node --test")] },
  {
    text: "Green. Sessions and store are committed.",
    calls: [bash('git add -A && git commit -qm "Add the store and review sessions" && git log --oneline')],
  },
  {
    text: "Import needs a CSV reader that follows RFC 4180, and tests for its corners.",
    calls: [putFlawed(NO_DOUBLED_QUOTE), put("test/csv.test.js")],
    decision: "CSV by RFC 4180, also tabs, byte order mark, bare line feeds.",
  },
  { text: "I run the CSV tests.", calls: [failing(test("csv"))] },
  {
    text: "Doubled quotes within a field are not read. A patch adds the missing case.",
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
    resolved: "CSV lost doubled quotes: the reader takes two quotes for one.",
  },
  { text: "The CSV tests again.", calls: [test("csv")] },
  {
    text: "On top of it: import and export of cards, and an example as other programs write it.",
    calls: [put("src/transfer.js"), put("examples/spanish.csv")],
  },
  { text: "Tests for import and export.", calls: [put("test/transfer.test.js")] },
  {
    text: "I run them, and look at the example byte by byte for line ends.",
    calls: [test("transfer"), bash("head -c 120 examples/spanish.csv | od -c | head -n 8")],
  },
  {
    text: "Statistics: counts by state, retention, streak, forecast; and their text for a terminal.",
    calls: [putFlawed(STREAK_ENDS_AT_MIDNIGHT), put("src/stats-text.js")],
    decision: "Retention leaves first answers out: they tell what was known before.",
  },
  { text: "Tests for the statistics.", calls: [put("test/stats.test.js")] },
  { text: "I run the statistics tests.", calls: [failing(test("stats"))] },
  {
    text: "The streak breaks in the morning, before anything was reviewed. Today must not count against it yet.",
    calls: [edit(STREAK_ENDS_AT_MIDNIGHT.path, STREAK_ENDS_AT_MIDNIGHT.wrong, STREAK_ENDS_AT_MIDNIGHT.right)],
    resolved: "The streak broke in the morning: a day that is not over counts only when it has answers.",
  },
  { text: "And again the statistics tests.", calls: [test("stats")] },
  {
    text: "They pass. I bring the plan up to date and commit.",
    calls: [
      todo(6),
      bash('git add -A && git commit -qm "Add CSV and statistics" && git show --stat --oneline'),
    ],
  },
  {
    text: "The card generator: first the one by rules, which works offline and makes nothing up.",
    calls: [put("src/generator/rules.js"), put("examples/photosynthesis.txt")],
    decision: "A generator is {name, generate(text, {count, signal})}; drafts() checks whatever comes back.",
  },
  {
    text: "Then the one that asks a language model; fetch is handed in, so that its tests need no network.",
    calls: [put("src/generator/openai.js")],
  },
  {
    text: "Both stand behind one interface, and what they give is checked there.",
    calls: [put("src/generator/generator.js")],
  },
  { text: "Tests for both generators and for the checks between.", calls: [put("test/generator.test.js")] },
  { text: "I run the generator tests.", calls: [test("generator")] },
];
