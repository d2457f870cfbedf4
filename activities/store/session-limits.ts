/** What of a session's settings changes while it runs, besides its model. */
import { eq, sql, type SQL } from "drizzle-orm";
import type { RunConfig } from "../config/agent-config.ts";
import type { Queryable } from "./db.ts";
import { sessions } from "./schema/index.ts";
import { configOf, configText } from "./stored-config.ts";

/**
 * Lets a session and its delegates cost so much in all, in USD: each holds itself to its own row. What it may cost already is
 * never taken from it.
 */
export const setMaxCost = (tx: Queryable, id: string, usd: number): Promise<void> =>
  change(tx, sql`${sessions.id} = ${id} or ${sessions.parentId} = ${id}`, (config) => {
    const maxCostUsd = Math.max(config.limits.maxCostUsd ?? 0, usd);
    return { ...config, limits: { ...config.limits, maxCostUsd } };
  });

/** Says that a session has tools of the operator's own. */
export const noteOwnTools = (tx: Queryable, id: string): Promise<void> =>
  change(tx, eq(sessions.id, id), (config) => ({ ...config, ownTools: true }));

async function change(tx: Queryable, which: SQL, to: (config: RunConfig) => RunConfig): Promise<void> {
  const rows = await tx
    .select({ id: sessions.id, config: configText })
    .from(sessions)
    .where(which)
    .orderBy(sessions.id)
    .for("update");
  for (const { id, config } of rows) {
    await tx
      .update(sessions)
      .set({ config: to(configOf(id, config)), updatedAt: sql`now()` })
      .where(eq(sessions.id, id));
  }
}
