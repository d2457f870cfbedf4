/** What a person does in Temporal's Web UI with "Reset". */
import { randomUUID } from "node:crypto";
import type { Client } from "@temporalio/client";

/**
 * Resets a session's newest run to the moment before it asked the model for a step.
 * @returns the new run's id
 * @throws Error where that run never asked for it
 */
export async function resetToStep(client: Client, id: string, step: number): Promise<string> {
  const { events } = await client.workflow.getHandle(id).fetchHistory();
  const asked = (events ?? [])
    .map((event) => event.activityTaskScheduledEventAttributes)
    .find((scheduled) => {
      const [input] = scheduled?.input?.payloads ?? [];
      if (scheduled?.activityType?.name !== "modelStep" || !input?.data) return false;
      return (JSON.parse(Buffer.from(input.data).toString()) as { step: number }).step === step;
    });
  if (!asked) throw new Error(`The run of ${id} has no model call of step ${step}.`);
  const { runId } = await client.workflowService.resetWorkflowExecution({
    namespace: client.options.namespace,
    workflowExecution: { workflowId: id },
    reason: "a test goes back",
    workflowTaskFinishEventId: asked.workflowTaskCompletedEventId ?? null,
    requestId: randomUUID(),
  });
  return runId;
}
