/**
 * Detects an agent that repeats itself, by the hashes of its calls and results; and what the model is told then, or about an answer that
 * does not end its task.
 */
import type { ToolFacts } from "../activities/contract/calls.ts";
import type { CallFacts } from "../activities/contract/activities.ts";

/** Source: OpenHands, four equal pairs of call and result. */
const REPEATS = 4;
/** Longer circles are of at most so many kinds of calls. Chosen by judgement: they count once they could have gone round three times. */
const KINDS = 4;
const CIRCLE = KINDS * 3;
/** A call that takes at least this long is a wait. Chosen: `sleep 1` is one, and reading, editing and searching take less. */
const PAUSE_MS = 1_000;

/** The warning. */
export const LOOP_WARNING_TEXT =
  "The last calls were the same and gave the same results. Repeating them will not change that. Read the results and try another way. If you cannot continue, say what prevents it.";

const PAUSE = "~";
const FAILED_EDIT = "!";
const EDITS: ReadonlySet<string> = new Set(["edit_file", "write_file", "apply_patch"]);

/** A call and its result as `stuckVerdict` takes them: a hash, and a mark if the call waited, or failed as no wait can mend. */
export function repeatable({ name }: Pick<CallFacts, "name">, facts: ToolFacts): string {
  if (EDITS.has(name) && facts.outcome === "error") return facts.hash + FAILED_EDIT;
  return facts.isLive === true || facts.ms >= PAUSE_MS ? facts.hash + PAUSE : facts.hash;
}

/**
 * @param calls since the last user message or warning, oldest first, as `repeatable` gives them
 * @param warned whether the model was already warned
 * @returns `warn` the first time the same call gave the same result four times, two alternated (A/B/A/B), or the last twelve were
 * of at most four kinds; `stop` after that; undefined while the agent makes progress, or waits
 */
export function stuckVerdict(calls: readonly string[], warned: boolean): "warn" | "stop" | undefined {
  const [a, b, c, d] = calls.slice(-REPEATS);
  const alternates = calls.length >= REPEATS && a === c && b === d && !waits(calls.slice(-REPEATS));
  const last = calls.slice(-CIRCLE);
  const circles = last.length === CIRCLE && kinds(last) <= KINDS && !waits(last);
  if (!alternates && !circles) return undefined;
  return warned ? "stop" : "warn";
}

/** Whether the calls since a warning show that it helped: more kinds of them than any circle has. */
export function hasMovedOn(calls: readonly string[]): boolean {
  return kinds(calls) > KINDS;
}

const bare = (call: string): string => call.replace(/[~!]$/, "");
const kinds = (calls: readonly string[]): number => new Set(calls.map(bare)).size;

/** Calls that ask again after some time may get the same result for long. An edit that fails is not waited for. */
function waits(calls: readonly string[]): boolean {
  if (calls.some((call) => call.endsWith(FAILED_EDIT))) return false;
  return calls.filter((call) => call.endsWith(PAUSE)).length * KINDS >= calls.length;
}

/** The note to the model before its one retry. @param why the answer is not JSON that matches the session's schema */
export const mismatchNote = (why: string): string =>
  `Your last answer is not what was asked for: ${why}. Answer again with one JSON value that matches the JSON Schema in your instructions, and nothing else.`;

/** @param tool the name of the one whose call was written as text */
export const wroteCallNote = (tool: string): string =>
  `Your last answer was text that looks like a call of ${tool}. Nothing was run: a call written as text is not a call. If you meant it, call ${tool} as a tool, in the form that your tools are given in. If not, answer in plain words.`;

/** @param reason the provider's own words */
export const emptyNote = (reason: string): string =>
  `Your last answer was empty. The provider says why: ${reason}. Answer again; if you meant to call a tool, write the call exactly by its schema.`;

export const CUT_NOTE =
  "Your last answers were all cut off by the output limit, without a call. Do not continue or repeat that text. Do the next step with a tool, large content in parts; or end with a short answer.";
