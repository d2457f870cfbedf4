/** Detects an agent that repeats itself, by the hashes of its calls and results. Pure: the workflow imports it. */

/** Source: OpenHands, four equal pairs of call and result. */
const REPEATS = 4;

/** The warning, which the model gets once. */
export const LOOP_WARNING_TEXT =
  "The last calls were the same and gave the same results. Repeating them will not change that. Read the results and try another way. If you cannot continue, say what prevents it.";

/**
 * @param hashes of call and result together, oldest first, since the last user message or warning
 * @param warned whether the model was already warned
 * @returns `warn` the first time the same call gave the same result four times or two alternated (A/B/A/B), `stop`
 * after that; undefined while the agent makes progress
 */
export function stuckVerdict(hashes: readonly string[], warned: boolean): "warn" | "stop" | undefined {
  if (hashes.length < REPEATS) return undefined;
  const [a, b, c, d] = hashes.slice(-REPEATS);
  if (a !== c || b !== d) return undefined;
  return warned ? "stop" : "warn";
}
