/** The settings of a session, besides its model, that change while it runs. */
import { eq, sql, type SQL } from "drizzle-orm";
import type { RunConfig } from "../config/agent-config.ts";
import type { Queryable } from "./db.ts";
import { sessions } from "./schema/index.ts";
import { configOf, configText } from "./stored-config.ts";

/**
 * Raises the cost limit of a session and its delegates, in USD: each checks the limit in its own row. Never lowers a limit.
 */
export const setMaxCost = (tx: Queryable, id: string, usd: number): Promise<void> =>
  change(tx, sql`${sessions.id} = ${id} or ${sessions.parentId} = ${id}`, (config) => {
    const maxCostUsd = Math.max(config.limits.maxCostUsd ?? 0, usd);
    return { ...config, limits: { ...config.limits, maxCostUsd } };
  });

/** Records that a session has the operator's own tools. */
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
