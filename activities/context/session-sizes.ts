/** The next request of many sessions: the same calculation as the trigger's, for lists and for sessions without a worker. */
import { runConfigSchema } from "../config/agent-config.ts";
import { measureOf } from "./context-size.ts";
import { requestSize } from "../transcript/size.ts";
import type { NextInputEstimate } from "../contract/request-size.ts";
import { prefixOf } from "./request.ts";
import type { Queryable } from "../store/db.ts";
import { loadViewSizes } from "../store/load-view.ts";
import { loadSettings } from "../store/reading.ts";
import { promptOf } from "../store/stored-prompt.ts";

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
