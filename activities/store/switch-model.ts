/** Another model for a session: from the next request on. */
import { and, eq, sql } from "drizzle-orm";
import { runConfigSchema, type RunConfig } from "../config/agent-config.ts";
import type { ModelTarget } from "../config/model-target.ts";
import { besidesModel, modelOf } from "../config/asked-model.ts";
import type { Store } from "./db.ts";
import { appendEvents } from "./events.ts";
import type { EventData } from "./event.ts";
import { events, sessions } from "./schema/index.ts";
import { lastStep, type Session } from "./sessions.ts";

/** The parts of a run's configuration that depend on its model. */
export type ModelSettings = ModelTarget & Pick<RunConfig, "summariser" | "fallback">;

/**
 * Gives a session another model, with its window, wire and prices; all other settings stay. Watchers see an
 * event. A run in progress uses the new model from its next step on, and compacts first if its window is
 * smaller. @returns false if the session has these settings already, or does not exist
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
    // The new model's settings include its summariser and fallbacks; all other settings stay the session's.
    const { summariser: _summariser, fallback: _fallback, ...kept } = besidesModel(before);
    const { summariser, fallback } = settings;
    const after = runConfigSchema.parse({ ...modelOf(settings), summariser, fallback, ...kept });
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

/** Notifies watchers that another model is used from this step on. Idempotent: once per step and model over all attempts. */
export async function announceSwitch(
  { db }: Pick<Store, "db">,
  { id, epoch }: Pick<Session, "id" | "epoch">,
  step: number,
  data: EventData["llm:switched"],
): Promise<void> {
  const type = "llm:switched";
  const announced = await db
    .select({ data: events.data })
    .from(events)
    .where(
      and(eq(events.sessionId, id), eq(events.epoch, epoch), eq(events.step, step), eq(events.type, type)),
    );
  if (announced.some((event) => (event.data as typeof data).to === data.to)) return;
  await appendEvents(db, id, epoch, [{ type, step, data }]);
}
