/** Whether an agent goes in circles, by the hashes of its calls with their results. Pure: the workflow imports it. */

/** Source: OpenHands, four equal pairs of call and result. */
const REPEATS = 4;

/** What the model is told once. */
export const NUDGE_TEXT =
  "The last calls were the same and gave the same results. Repeating them will not change that. Look at what they say, try another way, or, if you cannot go on, say what is in the way.";

/**
 * @param hashes of call and result together, oldest first, since the last user message or nudge
 * @param nudged whether the model was told already
 * @returns `nudge` the first time the same call gave the same result four times or two took turns (A/B/A/B), `stop`
 *   after that; undefined where it gets on
 */
export function stuckVerdict(hashes: readonly string[], nudged: boolean): "nudge" | "stop" | undefined {
  if (hashes.length < REPEATS) return undefined;
  const [a, b, c, d] = hashes.slice(-REPEATS);
  return a === c && b === d ? (nudged ? "stop" : "nudge") : undefined;
}
