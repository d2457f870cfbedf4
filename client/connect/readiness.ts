/** Whether a request can be served: a worker is there for it, and this process has the key of the session's data. */
import { workersOf } from "../setup/temporal-server.ts";
import type { Output } from "../console/output.ts";
import type { Services } from "./connection.ts";
import { ApplicationFailure } from "@temporalio/common";
import { describedRun, type DescribedRun } from "../../temporal/runs.ts";
import { decodePayloads } from "../../temporal/codec.ts";
import { missing, notPossible, type ClientError } from "../console/errors.ts";
import { harmlessLine } from "../console/format.ts";
import { isOthersRun } from "./describe-run.ts";
import { queueOfRun } from "../../temporal/own-runs.ts";

/** Reports a missing worker at once, before a wait begins. */
export async function warnWithoutWorker(services: Services, output: Pick<Output, "note">): Promise<void> {
  if (await isServed(services)) return;
  output.note(
    `No worker serves the task queue ${services.taskQueue}, so the work waits until one runs. Start one: longhaul up --detach\n`,
  );
}

/** Also true if Temporal does not answer: then no missing worker is reported. */
async function isServed({ temporal, taskQueue }: Services): Promise<boolean> {
  try {
    const { connection } = await temporal.client();
    return (await workersOf(connection, temporal.namespace, taskQueue)).length > 0;
  } catch {
    return true;
  }
}

/**
 * Refuses to send anything to another installation's run of the same id, and a person's words in the clear to a session whose data in
 * Temporal is encrypted: the memo that a session starts with shows which key encrypts it.
 * @throws ClientError (impossible) for another's run, (missing) if this process lacks that key
 */
export async function requireAccess(services: Services, sessionId: string): Promise<void> {
  const client = await services.temporal.client();
  const run = await describedRun(client, sessionId);
  if (run !== undefined && (await isOthersRun(services, sessionId, run))) throw othersRun(sessionId, run);
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

function othersRun(id: string, run: DescribedRun): ClientError {
  return notPossible(
    `Temporal's newest run under the id ${id} is another installation's (task queue ${harmlessLine(queueOfRun(run), 100)}): it was left as it is.`,
    "The two share a namespace: give one of them its own (TEMPORAL_NAMESPACE), or use another id.",
  );
}

export function isKeyMissing(error: unknown): boolean {
  return error instanceof ApplicationFailure && error.type === "CodecKeyMissing";
}
