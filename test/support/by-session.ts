/** A model for a session and its delegates. The request's cache key is a session's id and identifies the sender. */
import type { ParsedRequest, Reply, ReplyPart } from "./model-server/wire.ts";

/**
 * Answers in order, by the suffix of the session's id after the root's (`""`, `.s1c0`).
 * A request without an answer fails.
 */
export function bySession(
  answers: Readonly<Record<string, readonly (readonly ReplyPart[])[]>>,
): (request: ParsedRequest) => Reply {
  const counts = new Map<string, number>();
  return ({ cacheKey = "" }) => {
    const suffix = /\.s\d+c\d+(e\d+)?$/.exec(cacheKey)?.[0] ?? "";
    const count = counts.get(suffix) ?? 0;
    counts.set(suffix, count + 1);
    const parts = answers[suffix]?.[count];
    if (parts === undefined) throw new Error(`No answer ${count + 1} for "${suffix}".`);
    return { parts };
  };
}
