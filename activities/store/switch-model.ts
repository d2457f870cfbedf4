/** Another model for a session: from the next request on. */
import { eq, sql } from "drizzle-orm";
import { runConfigSchema, type RunConfig } from "../config/agent-config.ts";
import type { Store } from "./db.ts";
import { appendEvents } from "./events.ts";
import { sessions } from "./schema/index.ts";
import { lastStep } from "./sessions.ts";

/** What of a run's configuration a model decides. */
export type ModelSettings = Omit<RunConfig, "context" | "tools" | "sandbox" | "limits">;

/**
 * Gives a session another model, with its window, wire and prices; all else stays as the session began. Watchers are
 * told. A run that is on its way asks the new model from its next step on, and compacts first where its window is
 * smaller. @returns false where the session has these settings already, or is not there
 */
export function switchModel(
  store: Pick<Store, "db">,
  sessionId: string,
  settings: ModelSettings,
): Promise<boolean> {
  return store.db.transaction(async (tx) => {
    const [row] = await tx
      .select({ config: sessions.config, epoch: sessions.epoch })
      .from(sessions)
      .where(eq(sessions.id, sessionId))
      .for("update");
    if (row === undefined) return false;
    const before = runConfigSchema.parse(row.config);
    const { context, tools, sandbox, limits } = before;
    const after = runConfigSchema.parse({ ...settings, context, tools, sandbox, limits });
    if (JSON.stringify(before) === JSON.stringify(after)) return false;
    await tx
      .update(sessions)
      .set({ config: after, updatedAt: sql`now()` })
      .where(eq(sessions.id, sessionId));
    const data = { from: before.model, to: after.model, reason: "person" } as const;
    await appendEvents(tx, sessionId, row.epoch, [
      { type: "llm:switched", step: await lastStep(tx, sessionId), data },
    ]);
    return true;
  });
}
