/** The script's second part: sessions, CSV, statistics, the card generator. */
import { bashCall, edit, failing, grep, patch, read, type ScriptStep } from "../script-step.ts";
import {
  NEW_CARDS_NOT_COUNTED,
  NO_DOUBLED_QUOTE,
  put,
  putFlawed,
  STREAK_ENDS_AT_MIDNIGHT,
  test,
  todoCall,
} from "./app-files.ts";

export const MIDDLE_STEPS: readonly ScriptStep[] = [
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
