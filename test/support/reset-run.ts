/** The Web UI's "Reset". */
import { randomUUID } from "node:crypto";
import type { Client } from "@temporalio/client";

type History = Awaited<ReturnType<ReturnType<Client["workflow"]["getHandle"]>["fetchHistory"]>>;
export type HistoryEvent = NonNullable<History["events"]>[number];
/** Of a workflow task's end. */
export type TaskId = HistoryEvent["eventId"];

interface ResetOptions {
  /** Default: the session's newest run. */
  readonly runId?: string;
  /** Temporal's number for which signals and updates are sent again; default: all. */
  readonly resetReapplyType?: number;
}

/** Resets a run to the workflow task that `taskOf` finds in its history. @returns the new run's id */
export async function resetTo(
  client: Client,
  id: string,
  taskOf: (events: readonly HistoryEvent[]) => TaskId,
  { runId: ofRun, ...options }: ResetOptions = {},
): Promise<string> {
  const { events } = await client.workflow.getHandle(id, ofRun).fetchHistory();
  const { runId } = await client.workflowService.resetWorkflowExecution({
    namespace: client.options.namespace,
    workflowExecution: { workflowId: id, runId: ofRun },
    reason: "a test goes back",
    workflowTaskFinishEventId: taskOf(events ?? []) ?? null,
    requestId: randomUUID(),
    ...options,
  });
  return runId;
}

/** The newest one: of a run that waits, the moment of its wait. */
export const lastTask = (events: readonly HistoryEvent[]): TaskId =>
  events.findLast((event) => event.workflowTaskCompletedEventAttributes)?.eventId;

/**
 * Resets a session's newest run, or the given one, to the moment before it requested a step from the model.
 * @returns the new run's id
 * @throws Error if that run never requested it
 */
export async function resetToStep(client: Client, id: string, step: number, ofRun?: string): Promise<string> {
  const taskOf = (events: readonly HistoryEvent[]) => {
    const modelCall = askedIn(events).find((request) => request.step === step);
    if (!modelCall) throw new Error(`The run of ${id} has no model call of step ${step}.`);
    return modelCall.taskEventId;
  };
  return resetTo(client, id, taskOf, ofRun === undefined ? {} : { runId: ofRun });
}

/** The steps that a session's newest run requested, in order. */
export async function stepsAsked(client: Client, id: string): Promise<number[]> {
  const { events } = await client.workflow.getHandle(id).fetchHistory();
  return askedIn(events ?? []).map(({ step }) => step);
}

/** With the workflow task that scheduled each. */
function askedIn(events: readonly HistoryEvent[]) {
  return events.flatMap((event) => {
    const scheduled = event.activityTaskScheduledEventAttributes;
    const [input] = scheduled?.input?.payloads ?? [];
    if (scheduled?.activityType?.name !== "modelStep" || !input?.data) return [];
    const { step } = JSON.parse(Buffer.from(input.data).toString()) as { step: number };
    return [{ step, taskEventId: scheduled.workflowTaskCompletedEventId }];
  });
}
