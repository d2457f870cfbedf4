/** The flashcard application's files: the final version, and a first version where the script errs on purpose. */
import { readFileSync } from "node:fs";
import { bashCall, write, type ScriptCall } from "../script-step.ts";

/** A place in a file that the script gets wrong first. */
interface Flaw {
  readonly path: string;
  readonly right: string;
  readonly wrong: string;
}

/** Writes the final version of a file. */
export const put = (path: string): ScriptCall => write(path, finished(path));
/** Writes a file with flaws. */
export const putFlawed = (...flaws: readonly [Flaw, ...Flaw[]]): ScriptCall =>
  write(flaws[0].path, flawed(...flaws));
/** Runs the tests of one part. */
export const test = (name: string): ScriptCall => bashCall(`node --test test/${name}.test.js`);

function finished(path: string): string {
  return readFileSync(new URL(`./files/${path}`, import.meta.url), "utf8");
}

/**
 * The file with flaws inserted.
 * @throws Error when the file does not hold a flaw's right text exactly once, or its wrong text afterwards: the two no longer match.
 */
function flawed(...flaws: readonly [Flaw, ...Flaw[]]): string {
  return flaws.reduce((text, { path, right, wrong }) => {
    if (text.split(right).length !== 2) throw new Error(`${path} does not hold this once: ${right}`);
    const result = text.replace(right, () => wrong);
    // The edit that later fixes the flaw must find exactly one match.
    if (wrong !== "" && result.split(wrong).length !== 2)
      throw new Error(`${path} holds this twice: ${wrong}`);
    return result;
  }, finished(flaws[0].path));
}

export const NO_LOWEST_FACTOR: Flaw = {
  path: "src/sm2.js",
  right: "  return Math.max(LOWEST_FACTOR, Math.round(next * 10_000) / 10_000);",
  wrong: "  return Math.round(next * 10_000) / 10_000;",
};

export const TEMPORARY_FILE_STAYS: Flaw = {
  path: "src/store.js",
  right: "    await rm(temporary, { force: true });\n    throw new StoreError(`${path} cannot be written",
  wrong: "    throw new StoreError(`${path} cannot be written",
};

export const NEW_CARDS_NOT_COUNTED: Flaw = {
  path: "src/session.js",
  right: [
    "  const shown = collection.log.filter((entry) => entry.day === day && entry.first).length;",
    "  const fresh = cards.filter(isNew).slice(0, Math.max(0, newLimit - shown));",
  ].join("\n"),
  wrong: "  const fresh = cards.filter(isNew).slice(0, newLimit);",
};

export const NO_DOUBLED_QUOTE: Flaw = {
  path: "src/csv.js",
  right: "      else if (input[at + 1] === '\"') field += input[++at];\n",
  wrong: "",
};

export const STREAK_ENDS_AT_MIDNIGHT: Flaw = {
  path: "src/stats.js",
  right: "  let at = active.has(day) ? day : addDays(day, -1);",
  wrong: "  let at = day;",
};

export const ORIGIN_NOT_ASKED: Flaw = {
  path: "src/server.js",
  right: "    checkOrigin(request);\n",
  wrong: "",
};

export const NO_ORIGIN_CHECK: Flaw = {
  path: "src/server.js",
  right: finished("src/server.js").match(/\/\/ A page elsewhere[^]*?\n}\n\n/)?.[0] ?? "checkOrigin",
  wrong: "",
};

// The plan that the script shows with the `todo` tool.

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
export function todoCall(done: number): ScriptCall {
  const status = (at: number) => {
    if (at < done) return "completed";
    return at === done ? "in_progress" : "pending";
  };
  return { name: "todo", input: { items: PLAN.map((content, at) => ({ content, status: status(at) })) } };
}
