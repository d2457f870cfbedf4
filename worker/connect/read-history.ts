/** A run's history in readable form: the server returns its stored payloads, which may be encrypted. */
import type { Client } from "@temporalio/client";
import type { Payload } from "@temporalio/common";
import { createCodec } from "./codec.ts";

export type History = Awaited<ReturnType<ReturnType<Client["workflow"]["getHandle"]>["fetchHistory"]>>;

/**
 * Decodes people's messages and the activities' inputs, with the client's keys.
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
      update?.args,
    ])
      if (list?.payloads) list.payloads = await decode(client, workflowId, list.payloads);
  }
  return history;
}

/** With the client's keys. @throws CodecKeyMissing if a key is */
export function decode(client: Client, workflowId: string, payloads: Payload[]): Promise<Payload[]> {
  const [codec = createCodec([])] = client.workflow.options.loadedDataConverter.payloadCodecs;
  return codec.decode(payloads, { type: "workflow", namespace: client.options.namespace, workflowId });
}
