/** How large the next request of a session is: one calculation for the workflow's facts, the display, lists and the log. */
import { viewSize, type SizeInput, type ViewSize, requestSize } from "../transcript/size.ts";
import type { ContextSize, NextInputEstimate } from "../contract/request-size.ts";
import { pruneFiguresOf } from "../config/run-policy.ts";
import type { Session } from "../store/sessions.ts";
import { runConfigSchema } from "../config/agent-config.ts";
import { prefixOf } from "./request.ts";
import type { Queryable } from "../store/db.ts";
import { loadViewSizes } from "../store/load-view.ts";
import { loadSettings } from "../store/reading.ts";
import { promptOf } from "../store/stored-prompt.ts";

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

/** By id; a session whose configuration is of another version has no entry. */
export async function sessionSizes(
  db: Queryable,
  ids: readonly string[],
): Promise<Map<string, NextInputEstimate>> {
  if (ids.length === 0) return new Map();
  const [known, views] = await Promise.all([loadSettings(db, ids), loadViewSizes(db, ids)]);
  const sizes = new Map<string, NextInputEstimate>();
  for (const { id, config, tokenRatio, ...prompt } of known) {
    const parsed = runConfigSchema.safeParse(config);
    if (!parsed.success) continue;
    const prefix = prefixOf({ system: promptOf(prompt, parsed.data), config: parsed.data });
    const measure = measureOf({ config: parsed.data, tokenRatio }, prefix);
    sizes.set(id, requestSize({ rows: views.get(id) ?? [], ...measure }).next);
  }
  return sizes;
}
