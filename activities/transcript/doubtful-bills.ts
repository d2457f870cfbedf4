/** Detects bills that cannot belong to their requests, over several calls. Pure. */
import { contradicts } from "../contract/request-size.ts";

/** A request's input as it was estimated before it was sent, and as it was billed. */
export interface JudgedCall {
  readonly estimated: number;
  readonly actual: number;
}

/** Number of calls in a row that are judged: a single figure may be an accident. Source: ours. */
export const JUDGED_CALLS = 4;
/** Growth of a conversation over these calls from which a bill that does not grow says something. Source: ours, a short tool result a call. */
const MIN_GROWTH_TOKENS = 1_000;
/** Share of the expected growth that a true bill shows at least; its estimates are within some percent. */
const MIN_GROWTH_SHARE = 0.1;

/**
 * Whether each of the newest bills contradicts our count by far, or they stay the same while the conversation grows, as from a
 * server that silently cuts requests to its own window.
 * @param calls of one model, newest first
 */
export function areDoubtful(calls: readonly JudgedCall[]): boolean {
  const judged = calls.slice(0, JUDGED_CALLS);
  if (judged.length < JUDGED_CALLS) return false;
  if (judged.every(({ actual, estimated }) => contradicts(actual, estimated))) return true;
  let expected = 0;
  for (const [index, { estimated }] of judged.slice(0, -1).entries()) {
    const before = judged[index + 1]?.actual ?? estimated;
    // The conversation shrank between the two calls, as after a compaction: wait for the next calls.
    if (estimated < before) return false;
    expected += estimated - before;
  }
  const grown = (judged[0]?.actual ?? 0) - (judged.at(-1)?.actual ?? 0);
  return expected >= MIN_GROWTH_TOKENS && grown < MIN_GROWTH_SHARE * expected;
}

/** Whether a single bill gives reason to look at those before it. */
export function isSuspicious({ estimated, actual }: JudgedCall, pureTokens: number): boolean {
  return contradicts(actual, pureTokens) || estimated - actual >= MIN_GROWTH_TOKENS / JUDGED_CALLS;
}
