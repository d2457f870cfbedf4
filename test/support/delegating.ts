/** Sessions that delegate, and the tasks that matter for their delegates where one is reset. */
import type { WorkflowHandle } from "@temporalio/client";
import { eq } from "drizzle-orm";
import { type RunConfig, delegateConfigSchema } from "../../activities/config/agent-config.ts";
import type { Store } from "../../activities/store/db.ts";
import { delegations } from "../../activities/store/schema/index.ts";
import { checkSession } from "./checker/check-session.ts";
import type { SessionServices } from "./checker/collect.ts";
import type { ServedRequest } from "./model-server/wire.ts";
import type { HistoryEvent, TaskId } from "./reset-run.ts";
import type { ConfigChanges } from "./run-config.ts";

const { model: _model, ...settings } = delegateConfigSchema.parse({});

export const delegating = (
  more: Partial<typeof settings> = {},
  limits: Partial<RunConfig["limits"]> = {},
): ConfigChanges => ({ delegate: { ...settings, ...more }, limits });

/** The task that requested the newest delegate: its answer is stored, and no part of it has begun. */
export const beforeDelegate = (events: readonly HistoryEvent[]): TaskId =>
  events.findLast(
    ({ activityTaskScheduledEventAttributes: scheduled }) => scheduled?.activityType?.name === "openDelegate",
  )?.activityTaskScheduledEventAttributes?.workflowTaskCompletedEventId;

/** The task that started the newest delegate: its session is there, and its run is still to be started. */
export const atStart = (events: readonly HistoryEvent[]): TaskId =>
  events.findLast((event) => event.startChildWorkflowExecutionInitiatedEventAttributes)
    ?.startChildWorkflowExecutionInitiatedEventAttributes?.workflowTaskCompletedEventId;

/** The first task after a delegate was started. */
export const afterStart = (events: readonly HistoryEvent[]): TaskId => {
  const started = events.findIndex((event) => event.childWorkflowExecutionStartedEventAttributes);
  return events.slice(started).find((event) => event.workflowTaskCompletedEventAttributes)?.eventId;
};

/** The offline checker's claims, over a session and all its delegates that used the same model. */
export async function checkFamily(
  services: SessionServices,
  { model }: { readonly model: { readonly log: readonly ServedRequest[] } },
): Promise<void> {
  const ids = new Set(model.log.map(({ request }) => request?.cacheKey));
  for (const id of ids) {
    if (id === undefined) throw new Error("A request without a key belongs to no session.");
    const log = model.log.filter(({ request }) => request?.cacheKey === id);
    await checkSession(services, { id, model: { log } });
  }
}

/** How many child workflows a run had at the same time. */
export async function mostAtOnce(handle: Pick<WorkflowHandle, "fetchHistory">): Promise<number> {
  const { events } = await handle.fetchHistory();
  let [open, most] = [0, 0];
  for (const event of events ?? []) {
    if (event.childWorkflowExecutionStartedEventAttributes) open += 1;
    if (event.childWorkflowExecutionCompletedEventAttributes) open -= 1;
    most = Math.max(most, open);
  }
  return most;
}

/** All calls of a session that were delegated, abandoned lines too, in order. */
export function delegationsOf({ db }: Pick<Store, "db">, id: string) {
  return db
    .select()
    .from(delegations)
    .where(eq(delegations.sessionId, id))
    .orderBy(delegations.epoch, delegations.step, delegations.callIndex);
}
