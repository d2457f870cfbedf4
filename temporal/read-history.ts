/** A run's history in readable form: the server returns its stored payloads, which may be encrypted. */
import type { Client } from "@temporalio/client";
import { decodePayloads } from "./decode-payloads.ts";

export type History = Awaited<ReturnType<ReturnType<Client["workflow"]["getHandle"]>["fetchHistory"]>>;

/**
 * Decodes people's messages and the activities' inputs and results, with the client's keys.
 * @throws WorkflowNotFoundError if Temporal has no such run, CodecKeyMissing if a key is
 */
export async function readHistory(client: Client, workflowId: string, runId: string): Promise<History> {
  const history = await client.workflow.getHandle(workflowId, runId).fetchHistory();
  for (const event of history.events ?? []) {
    const update =
      event.workflowExecutionUpdateAdmittedEventAttributes?.request?.input ??
      event.workflowExecutionUpdateAcceptedEventAttributes?.acceptedRequest?.input;
    for (const list of [
      event.workflowExecutionStartedEventAttributes?.input,
      event.workflowExecutionSignaledEventAttributes?.input,
      event.activityTaskScheduledEventAttributes?.input,
      event.activityTaskCompletedEventAttributes?.result,
      update?.args,
    ])
      if (list?.payloads) list.payloads = await decodePayloads(client, workflowId, list.payloads);
  }
  return history;
}
