/** Payloads that a server returned as they are stored, in readable form. */
import type { Client } from "@temporalio/client";
import type { Payload } from "@temporalio/common";
import { createCodec } from "./codec.ts";

/** With the client's keys. @throws CodecKeyMissing if a key is */
export function decodePayloads(client: Client, workflowId: string, payloads: Payload[]): Promise<Payload[]> {
  const [codec = createCodec([])] = client.workflow.options.loadedDataConverter.payloadCodecs;
  return codec.decode(payloads, { type: "workflow", namespace: client.options.namespace, workflowId });
}
