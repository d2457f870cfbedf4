/** Refuses to send a person's words in the clear to a session whose data in Temporal is encrypted. */
import { ApplicationFailure } from "@temporalio/common";
import { describedRun } from "../../temporal/described-run.ts";
import { decodePayloads } from "../../temporal/decode-payloads.ts";
import { missing } from "../console/errors.ts";
import type { Temporal } from "./connection.ts";

/**
 * The memo that a session starts with shows which key encrypts it.
 * @throws ClientError (missing) if this process lacks that key
 */
export async function requireKey(temporal: Temporal, sessionId: string): Promise<void> {
  const client = await temporal.client();
  const run = await describedRun(client, sessionId);
  const fields = run?.raw.workflowExecutionInfo?.memo?.fields ?? {};
  try {
    await decodePayloads(client, sessionId, Object.values(fields));
  } catch (error) {
    if (!isKeyMissing(error)) throw error;
    throw missing(
      `What Temporal keeps of ${sessionId} is encrypted with a key that LONGHAUL_CODEC_KEYS does not have here: nothing was sent.`,
      "Set LONGHAUL_CODEC_KEYS as for the worker.",
      error,
    );
  }
}

export function isKeyMissing(error: unknown): boolean {
  return error instanceof ApplicationFailure && error.type === "CodecKeyMissing";
}
