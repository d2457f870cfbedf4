/** The Web UI's "Reset". */
import { randomUUID } from "node:crypto";
import type { Client } from "@temporalio/client";

interface Asked {
  readonly step: number;
  /** The workflow task that scheduled it. */
  readonly taskEventId: Awaited<ReturnType<typeof askedIn>>[number]["taskEventId"];
}

/**
 * Resets a session's newest run, or the given one, to the moment before it requested a step from the model.
 * @returns the new run's id
 * @throws Error if that run never requested it
 */
export async function resetToStep(client: Client, id: string, step: number, ofRun?: string): Promise<string> {
  const asked: Asked | undefined = (await askedIn(client, id, ofRun)).find((each) => each.step === step);
  if (!asked) throw new Error(`The run of ${id} has no model call of step ${step}.`);
  const { runId } = await client.workflowService.resetWorkflowExecution({
    namespace: client.options.namespace,
    workflowExecution: { workflowId: id, ...(ofRun === undefined ? {} : { runId: ofRun }) },
    reason: "a test goes back",
    workflowTaskFinishEventId: asked.taskEventId ?? null,
    requestId: randomUUID(),
  });
  return runId;
}

/** The steps that a session's newest run requested, in order. */
export async function stepsAsked(client: Client, id: string): Promise<number[]> {
  return (await askedIn(client, id)).map(({ step }) => step);
}

async function askedIn(client: Client, id: string, runId?: string) {
  const { events } = await client.workflow.getHandle(id, runId).fetchHistory();
  return (events ?? []).flatMap((event) => {
    const scheduled = event.activityTaskScheduledEventAttributes;
    const [input] = scheduled?.input?.payloads ?? [];
    if (scheduled?.activityType?.name !== "modelStep" || !input?.data) return [];
    const { step } = JSON.parse(Buffer.from(input.data).toString()) as { step: number };
    return [{ step, taskEventId: scheduled.workflowTaskCompletedEventId }];
  });
}
