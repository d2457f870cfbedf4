/** How large a session's next request is: one calculation for the workflow's facts, the display and the log. Pure. */
import { viewSize, type SizeInput, type ViewSize } from "../transcript/size.ts";
import type { ContextSize } from "../contract/request-size.ts";
import { pruneFiguresOf } from "../config/run-policy.ts";
import type { Session } from "../store/sessions.ts";

/** What determines a view's size, apart from its rows. */
export type Measure = Omit<SizeInput, "rows">;

/** @param prefix measured size of system prompt and tools */
export function measureOf(
  { config, tokenRatio }: Pick<Session, "config" | "tokenRatio">,
  prefix: { readonly tokens: number },
): Measure {
  return {
    prefixTokens: prefix.tokens,
    ratio: tokenRatio?.ratio ?? 1,
    windowTokens: config.contextWindow,
    pruneProtectTokens: pruneFiguresOf(config).pruneProtectTokens,
    model: config.model,
  };
}

/** A view's size as the workflow holds it. */
export function contextSizeOf(rows: SizeInput["rows"], measure: Measure): ContextSize {
  return sizeFacts(viewSize({ rows, ...measure }));
}

export function sizeFacts({ next, prunableTokens, growthTokens, ratio }: ViewSize): ContextSize {
  // Four places are exact to a token in ten thousand, and short in the history.
  const known = Math.round(ratio * 10_000) / 10_000;
  return {
    used: next.tokens,
    estimated: next.estimated,
    prunable: prunableTokens,
    ...(growthTokens === undefined ? {} : { growth: growthTokens }),
    ...(known === 1 ? {} : { ratio: known }),
  };
}
