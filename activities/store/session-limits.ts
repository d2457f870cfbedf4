/** Limits of a session that a person raises while it runs. */
import { eq, sql } from "drizzle-orm";
import type { Queryable } from "./db.ts";
import { sessions } from "./schema/index.ts";
import { configOf } from "./stored-config.ts";

/** Lets a session and its delegates cost so much in all, in USD. What it may cost already is never taken from it. */
export async function setMaxCost(tx: Queryable, id: string, usd: number): Promise<void> {
  const [row] = await tx
    .select({ config: sessions.config })
    .from(sessions)
    .where(eq(sessions.id, id))
    .for("update");
  if (row === undefined) return;
  const config = configOf(id, row.config);
  const maxCostUsd = Math.max(config.limits.maxCostUsd ?? 0, usd);
  const raised = { ...config, limits: { ...config.limits, maxCostUsd } };
  await tx
    .update(sessions)
    .set({ config: raised, updatedAt: sql`now()` })
    .where(eq(sessions.id, id));
}
