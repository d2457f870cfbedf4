/** The next request of many sessions: the same reckoning as the trigger's, for lists and for sessions without a worker. */
import { runConfigSchema } from "../config/agent-config.ts";
import { measureOf } from "./context-size.ts";
import { requestSize } from "../transcript/size.ts";
import type { NextInputEstimate } from "../transcript/tokens.ts";
import { prefixMaker } from "./request.ts";
import type { Queryable } from "../store/db.ts";
import { loadSettings, loadViewSizes } from "../store/view-sizes.ts";
import { systemPrompt } from "../config/system-prompt.ts";

/** By id; a session whose configuration is of another version has no entry. Two queries, however many sessions. */
export async function sessionSizes(
  db: Queryable,
  ids: readonly string[],
): Promise<Map<string, NextInputEstimate>> {
  if (ids.length === 0) return new Map();
  const known = await loadSettings(db, ids);
  const views = await loadViewSizes(db, ids);
  const prefixFor = prefixMaker();
  const sizes = new Map<string, NextInputEstimate>();
  for (const { id, config, instructions, learnt } of known) {
    const parsed = runConfigSchema.safeParse(config);
    if (!parsed.success) continue;
    const prefix = prefixFor(systemPrompt({ instructions, config: parsed.data }));
    const measure = measureOf({ config: parsed.data, learnt }, prefix);
    sizes.set(id, requestSize({ rows: views.get(id) ?? [], ...measure }).next);
  }
  return sizes;
}
