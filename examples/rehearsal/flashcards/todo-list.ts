/** The plan that the script shows with the `todo` tool. */
import type { ScriptCall } from "../script-step.ts";

export const PLAN: readonly string[] = [
  "Package, version control, tests that run",
  "SM-2 scheduling, checked against known values",
  "Decks, cards and a search language",
  "Storage in a JSON file with atomic writes",
  "Review sessions with undo",
  "CSV import and export, statistics",
  "Card generator behind an interface: rules and a language model",
  "Command line and a small web page",
  "Try it as a user would",
  "README, full test run, last commit",
];

/** The plan with the given number of items done and the next one started. */
export function todo(done: number): ScriptCall {
  const status = (at: number) => {
    if (at < done) return "completed";
    return at === done ? "in_progress" : "pending";
  };
  return { name: "todo", input: { items: PLAN.map((content, at) => ({ content, status: status(at) })) } };
}
