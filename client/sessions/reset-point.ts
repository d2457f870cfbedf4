/** Finds in Temporal's histories where a session requested a step from its model: the point that a reset goes back to. */
import { WorkflowNotFoundError, type Client } from "@temporalio/client";
import { optionalTsToMs } from "@temporalio/common/lib/time.js";
import { readHistory, type History } from "../../temporal/read-history.ts";

export interface ResetPoint {
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
  let gone = false;
  for (const runId of runIds) {
    let history: History;
    try {
      history = await readHistory(client, sessionId, runId);
    } catch (error) {
      if (!(error instanceof WorkflowNotFoundError)) throw error;
      gone = true;
      continue;
    }
    const asked = askedIn(history.events ?? [], runId);
    const newest = asked.at(-1)?.step;
    // A step may be requested several times, such as after an interrupt: the first request is its beginning.
    const point = asked.find((request) => request.step === (step ?? newest));
    if (point) return { kind: "found", point };
  }
  return { kind: gone ? "gone" : "never" };
}

function askedIn(events: readonly Event[], runId: string): ResetPoint[] {
  const points: ResetPoint[] = [];
  const tasks = new WorkflowTasks();
  /** The task at which waiting messages were parked on the way to a step. */
  let parking: Long | undefined;
  for (const event of events) {
    tasks.add(event);
    const scheduled = event.activityTaskScheduledEventAttributes;
    const task = scheduled?.workflowTaskCompletedEventId;
    if (!scheduled || !task) continue;
    const name = scheduled.activityType?.name;
    const taken = parking ?? tasks.firstAttempt(task);
    // This activity may run at any time, so it does not end the parking.
    if (name === "announceQueued") continue;
    parking = name === "parkGuidance" ? taken : undefined;
    const data = scheduled.input?.payloads?.[0]?.data;
    if (name !== "modelStep" || !data) continue;
    const { step, round } = JSON.parse(Buffer.from(data).toString()) as { step: number; round?: number };
    points.push({ runId, step, round, taskFinishedEventId: taken, at: tasks.beganAt(taken) });
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
