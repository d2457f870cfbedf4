/** Takes a session back to the moment before a step, by Temporal's own reset, like the Web UI. */
import { shellWord } from "../console/format.ts";
import { randomUUID } from "node:crypto";
import { type Client, WorkflowNotFoundError } from "@temporalio/client";
import type { Database } from "../../activities/store/db.ts";
import { dropSaidAfter, recoverGuidance } from "../../activities/store/guidance.ts";
import type { SessionRow } from "../../activities/store/reading.ts";
import { runsOfLine } from "../../activities/store/lines.ts";
import { takeOver } from "../../activities/store/runs.ts";
import { findSandbox } from "../../activities/store/sandboxes.ts";
import { lastStep } from "../../activities/store/sessions.ts";
import { temporalRuns } from "../../temporal/session-runs.ts";
import { until } from "../../temporal/patience.ts";
import { clientSanitizer } from "../config/config.ts";
import type { Services } from "../connect/connection.ts";
import { describedRun, readHistory, type History } from "../../temporal/runs.ts";
import { describeRun } from "../connect/describe-run.ts";
import { settled } from "../connect/missing-service.ts";
import { requireAccess } from "../connect/readiness.ts";
import { notPossible, usageError } from "../console/errors.ts";
import { recordAction } from "./with-session.ts";
import { optionalTsToMs } from "@temporalio/common/lib/time.js";

/** Temporal's codes for abandoned events that are not applied to the new run. */
const SIGNAL = 1;
const UPDATE = 2;
const CANCEL_REQUEST = 4;

export interface Retry {
  /** The first step to repeat; undefined: the newest that began. */
  readonly fromStep: number | undefined;
  /** Messages since then are not delivered again. */
  readonly dropMessages: boolean;
}

export interface Retried {
  readonly step: number;
  readonly fromRun: string;
  readonly runId: string;
  readonly epoch: number;
}

/**
 * The reset ends the current run; the step may be in an earlier run of a session that continued as new.
 * @throws ClientError (usage) for a step that never ran, (impossible) if there is nothing to go back to, (missing) as
 * `requireAccess`
 */
export async function retrySession(services: Services, row: SessionRow, retry: Retry): Promise<Retried> {
  const { store } = services;
  await requireAccess(services, row.id);
  const client = await services.temporal.client();
  const last = await lastStep(store.db, row.id);
  if (retry.fromStep !== undefined) requireStep(row.id, retry.fromStep, last);
  const newest = (await describeRun(services, row.id))?.runId;
  const sessionRuns = temporalRuns(
    client,
    { db: store.db, taskQueue: services.taskQueue },
    clientSanitizer().clean,
  );
  const known = await runsOfLine(store.db, row.id);
  const runIds = [...new Set([...(newest === undefined ? [] : [newest]), ...known])];
  const resetPoint = await findResetPoint(client, row.id, runIds, retry.fromStep);
  if (resetPoint.kind === "gone") throw historyGone(row.id, retry.fromStep ?? last);
  if (resetPoint.kind === "never") {
    if (retry.fromStep !== undefined && last > 0) throw outOfRange(row.id, retry.fromStep, last);
    throw notPossible(`${row.id} has not started a step: there is nothing to retry.`);
  }
  const { point } = resetPoint;
  await recordAction(services, row, "retry");
  await awaitSaves(store.db, row.id);
  // Messages that the ended runs have not stored are stored before the new run can ask for them.
  const keep = async () => {
    const runs = { inCharge: row.runId ?? undefined, ending: newest };
    const unkept = await sessionRuns.unkept(row.id, runs);
    const at = { sessionId: row.id, epoch: row.epoch, step: last };
    await store.db.transaction((tx) => recoverGuidance(tx, at, unkept));
  };
  await keep();
  if (retry.dropMessages) await dropSaidAfter(store.db, row.id, point.at);
  const runId = await settled({
    make: () => reset(client, row.id, point),
    find: async () => {
      const now = (await describedRun(client, row.id))?.runId;
      if (now === undefined || now === newest) return undefined;
      const origin = await sessionRuns.origin(row.id, now);
      return origin !== undefined && "runId" in origin && origin.runId === point.runId ? now : undefined;
    },
    what: `it took ${row.id} back to before step ${point.step}`,
    again: `See where it stands: longhaul status ${shellWord(row.id)}. Retrying the step again is safe: longhaul retry ${shellWord(row.id)} --from-step ${point.step}`,
  });
  // Messages that arrived during the retry.
  await keep();
  // The run's first activity would do this; done here, watchers see it even while no worker runs.
  const { step, round } = point;
  const takeover = await takeOver(
    { store, sessionRuns },
    { sessionId: row.id, runId },
    { step, phase: "model", round },
  );
  if (takeover === "superseded") throw overtaken(row.id, step);
  return { step, fromRun: point.runId, runId, epoch: takeover.epoch };
}

/** @returns the new run */
async function reset(client: Client, workflowId: string, point: ResetPoint): Promise<string> {
  const { runId } = await client.workflowService.resetWorkflowExecution({
    namespace: client.options.namespace,
    workflowExecution: { workflowId, runId: point.runId },
    reason: `longhaul retry --from-step ${point.step}`,
    workflowTaskFinishEventId: point.taskFinishedEventId,
    requestId: randomUUID(),
    // Messages wait in Postgres; a cancel, an interrupt or a compaction of the old line does not apply to the new one.
    resetReapplyExcludeTypes: [SIGNAL, UPDATE, CANCEL_REQUEST],
  });
  return runId;
}

/** @throws ClientError (usage) if the session's live line has no such step */
export function requireStep(id: string, step: number, last: number): void {
  if (!Number.isInteger(step) || step < 1 || step > last + 1) throw outOfRange(id, step, last);
}

function outOfRange(id: string, step: number, last: number) {
  return usageError(
    last === 0 ? `${id} has no finished step.` : `${id} has steps 1 to ${last}, but no step ${step}.`,
    `longhaul status ${shellWord(id)} shows its state.`,
  );
}

function overtaken(id: string, step: number) {
  return notPossible(
    `${id} went back to before step ${step}, and another retry or reset has replaced that run already.`,
    `See where it stands: longhaul status ${shellWord(id)}`,
  );
}

function historyGone(id: string, step: number) {
  return notPossible(
    `Temporal no longer has the history in which ${id} began step ${step}: its retention period has passed.`,
    `The conversation is kept. Continue from there in a new session: longhaul fork ${shellWord(id)} --from-step ${Math.max(1, step)}`,
  );
}

/** How long to wait for a save in progress. Chosen: most take a second. */
const SAVE_MS = 10_000;
const POLL_MS = 100;

/** Waits until no save of the session is in progress, for a while. */
export async function awaitSaves(db: Database, sessionId: string): Promise<void> {
  await until(async () => ((await findSandbox(db, sessionId))?.savesBegun ?? 0) === 0, SAVE_MS, POLL_MS);
}

interface ResetPoint {
  readonly runId: string;
  readonly step: number;
  /** Number of compactions by then; undefined if the run did not report it. */
  readonly round: number | undefined;
  /** The workflow task that requested the step, or its earlier failed attempt: the reset repeats it. */
  readonly taskFinishedEventId: Long;
  /** ISO time at which that task began, as the workflow saw it: messages sent by then are part of the repeated step. */
  readonly at: string;
}

type Event = NonNullable<History["events"]>[number];
type Long = NonNullable<
  NonNullable<Event["activityTaskScheduledEventAttributes"]>["workflowTaskCompletedEventId"]
>;

export type Found =
  | { readonly kind: "found"; readonly point: ResetPoint }
  /** No run requested it. */
  | { readonly kind: "never" }
  /** Temporal no longer has the history of a run that may have requested it. */
  | { readonly kind: "gone" };

/**
 * Searches the runs of a session's line, newest first: if a step was run again after a reset, the live one is found.
 * @param step the step to look for; undefined: the newest that was requested
 */
export async function findResetPoint(
  client: Client,
  sessionId: string,
  runIds: readonly string[],
  step: number | undefined,
): Promise<Found> {
  let lacksHistory = false;
  for (const runId of runIds) {
    let history: History;
    try {
      history = await readHistory(client, sessionId, runId);
    } catch (error) {
      if (!(error instanceof WorkflowNotFoundError)) throw error;
      lacksHistory = true;
      continue;
    }
    const points = pointsIn(history.events ?? [], runId);
    const newest = points.at(-1)?.step;
    // A step may be requested several times, such as after an interrupt: the first request is its beginning.
    const point = points.find((request) => request.step === (step ?? newest));
    if (point) return { kind: "found", point };
  }
  return { kind: lacksHistory ? "gone" : "never" };
}

function pointsIn(events: readonly Event[], runId: string): ResetPoint[] {
  const points: ResetPoint[] = [];
  const tasks = new WorkflowTasks();
  for (const event of events) {
    tasks.add(event);
    const scheduled = event.activityTaskScheduledEventAttributes;
    const task = scheduled?.workflowTaskCompletedEventId;
    if (!scheduled || !task) continue;
    const data = scheduled.input?.payloads?.[0]?.data;
    if (scheduled.activityType?.name !== "modelStep" || !data) continue;
    const taskFinishedEventId = tasks.firstAttempt(task);
    const { step, round } = JSON.parse(Buffer.from(data).toString()) as { step: number; round?: number };
    points.push({ runId, step, round, taskFinishedEventId, at: tasks.beganAt(taskFinishedEventId) });
  }
  return points;
}

/** The workflow tasks of a history so far, each named by the event of its end. */
class WorkflowTasks {
  /** Per task, the attempt that failed before it, such as at a reset: later messages came after the step's start. */
  readonly #failedBefore = new Map<string, Long>();
  readonly #began = new Map<string, string>();
  #failed: Long | undefined;
  #startedAt = new Date(0).toISOString();

  add(event: Event): void {
    const { eventId } = event;
    if (event.workflowTaskStartedEventAttributes)
      this.#startedAt = new Date(optionalTsToMs(event.eventTime) ?? 0).toISOString();
    if (event.workflowTaskFailedEventAttributes || event.workflowTaskCompletedEventAttributes)
      this.#began.set(String(eventId), this.#startedAt);
    if (event.workflowTaskFailedEventAttributes && eventId) this.#failed = eventId;
    if (event.workflowTaskCompletedEventAttributes) {
      if (this.#failed) this.#failedBefore.set(String(eventId), this.#failed);
      this.#failed = undefined;
    }
  }

  firstAttempt(task: Long): Long {
    return this.#failedBefore.get(String(task)) ?? task;
  }

  /** ISO time at which a task began; for an unknown task, that of the newest one. */
  beganAt(task: Long): string {
    return this.#began.get(String(task)) ?? this.#startedAt;
  }
}
