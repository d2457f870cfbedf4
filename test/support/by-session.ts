/** A model for a session and its delegates: who asks is known by the request's key, which is a session's id. */
import type { ParsedRequest, Reply, ReplyPart } from "./model-server/wire.ts";

/**
 * Answers by what stands behind the root's id in the asking session's (`""`, `.s1c0`), in order.
 * A request that there is no answer for fails.
 */
export function bySession(
  answers: Readonly<Record<string, readonly (readonly ReplyPart[])[]>>,
): (request: ParsedRequest) => Reply {
  const asked = new Map<string, number>();
  return ({ cacheKey = "" }) => {
    const suffix = /\.s\d+c\d+(e\d+)?$/.exec(cacheKey)?.[0] ?? "";
    const count = asked.get(suffix) ?? 0;
    asked.set(suffix, count + 1);
    const parts = answers[suffix]?.[count];
    if (parts === undefined) throw new Error(`No answer ${count + 1} for "${suffix}".`);
    return { parts };
  };
}
