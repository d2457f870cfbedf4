/** The settings of a session that change while it runs: its model, its cost limit, the operator's own tools. */
import { isDeepStrictEqual } from "node:util";
import { and, eq, sql, type SQL } from "drizzle-orm";
import { runConfigSchema, type RunConfig } from "../config/agent-config.ts";
import { followSchema } from "../config/follow-settings.ts";
import { besidesModel, modelOf } from "../config/asked-model.ts";
import type { ModelTarget } from "../config/model-target.ts";
import type { Queryable, Store } from "./db.ts";
import type { EventData } from "./event.ts";
import { appendEvents } from "./events.ts";
import { events, sessions } from "./schema/index.ts";
import { lastStep, type Session } from "./sessions.ts";
import { parseStoredConfig, configText } from "./stored-settings.ts";

/** The parts of a run's configuration that depend on its model. */
export type ModelSettings = ModelTarget & Pick<RunConfig, "summariser" | "fallback">;

/**
 * Gives a session another model, with its window, wire and prices; all other settings stay. Watchers see an event. A run in
 * progress uses the new model from its next step on, and compacts first if its window is smaller.
 * @returns false if the session has these settings already, or does not exist
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
    const { summariser: _summariser, fallback: _fallback, ...unchanged } = besidesModel(before);
    const { summariser, fallback } = settings;
    const after = runConfigSchema.parse({ ...modelOf(settings), summariser, fallback, ...unchanged });
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

/** The session stays with its pull request from now on, and has the tools for that from its next run on. Idempotent. */
export async function setFollows(tx: Queryable, sessionId: string): Promise<void> {
  const [row] = await tx
    .select({ config: sessions.config })
    .from(sessions)
    .where(eq(sessions.id, sessionId))
    .for("update");
  const { repository, ...config } = runConfigSchema.parse(row?.config);
  if (repository === undefined || repository.follow?.on === true) return;
  const follow = followSchema.parse({ ...repository.follow, on: true });
  await tx
    .update(sessions)
    .set({ config: runConfigSchema.parse({ ...config, repository: { ...repository, follow } }) })
    .where(eq(sessions.id, sessionId));
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

/**
 * Raises the cost limit of a session and its delegates, in USD: each checks the limit in its own row. Never lowers a limit.
 */
export const setMaxCost = (tx: Queryable, id: string, usd: number): Promise<void> =>
  change(tx, sql`${sessions.id} = ${id} or ${sessions.parentId} = ${id}`, (config) => {
    const maxCostUsd = Math.max(config.limits.maxCostUsd ?? 0, usd);
    return { ...config, limits: { ...config.limits, maxCostUsd } };
  });

interface WindowChange {
  readonly model: string;
  readonly servedWindow: number;
  readonly untilRunEnds?: true;
}

/**
 * Corrects a model's window to what its server says, wherever the session uses the model. Idempotent.
 * @param window.untilRunEnds only until then: behind a gateway, another server may answer next time
 */
export const setWindow = (
  tx: Queryable,
  id: string,
  { model, servedWindow, untilRunEnds }: WindowChange,
): Promise<void> =>
  changeTargets(tx, id, (target) =>
    target.model === model
      ? {
          contextWindow: servedWindow,
          widerWindow: untilRunEnds === true ? (target.widerWindow ?? target.contextWindow) : undefined,
        }
      : {},
  );

/** A new run begins with the windows that servers' words have corrected. Idempotent. */
export const restoreWindows = (tx: Queryable, id: string): Promise<void> =>
  changeTargets(tx, id, ({ contextWindow, widerWindow }) =>
    widerWindow === undefined || widerWindow <= contextWindow
      ? {}
      : { contextWindow: widerWindow, widerWindow: undefined },
  );

type Windows = Pick<ModelTarget, "model" | "contextWindow" | "widerWindow">;

/** Changes the windows of a session's models. */
const changeTargets = (tx: Queryable, id: string, to: (target: Windows) => Partial<Windows>): Promise<void> =>
  change(tx, eq(sessions.id, id), (config) => {
    const { summariser, fallback } = config;
    return {
      ...config,
      ...to(config),
      ...(summariser === undefined ? {} : { summariser: { ...summariser, ...to(summariser) } }),
      ...(fallback === undefined ? {} : { fallback: fallback.map((one) => ({ ...one, ...to(one) })) }),
    };
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
  for (const { id, config: text } of rows) {
    const config = parseStoredConfig(id, text);
    const changed = to(config);
    if (isDeepStrictEqual(config, changed)) continue;
    await tx
      .update(sessions)
      .set({ config: changed, updatedAt: sql`now()` })
      .where(eq(sessions.id, id));
  }
}
