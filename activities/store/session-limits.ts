/** What of a session's settings changes while it runs, beside its model. */
import { eq, sql } from "drizzle-orm";
import type { RunConfig } from "../config/agent-config.ts";
import type { Queryable } from "./db.ts";
import { sessions } from "./schema/index.ts";
import { configOf, configText } from "./stored-config.ts";

/** Lets a session and its delegates cost so much in all, in USD. What it may cost already is never taken from it. */
export const setMaxCost = (tx: Queryable, id: string, usd: number): Promise<void> =>
  change(tx, id, (config) => {
    const maxCostUsd = Math.max(config.limits.maxCostUsd ?? 0, usd);
    return { ...config, limits: { ...config.limits, maxCostUsd } };
  });

/** Says that a session has tools of the operator's own. */
export const noteOwnTools = (tx: Queryable, id: string): Promise<void> =>
  change(tx, id, (config) => ({ ...config, ownTools: true }));

async function change(tx: Queryable, id: string, to: (config: RunConfig) => RunConfig): Promise<void> {
  const [row] = await tx
    .select({ config: configText })
    .from(sessions)
    .where(eq(sessions.id, id))
    .for("update");
  if (row === undefined) return;
  const config = to(configOf(id, row.config));
  await tx
    .update(sessions)
    .set({ config, updatedAt: sql`now()` })
    .where(eq(sessions.id, id));
}
