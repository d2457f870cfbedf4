/** Takes a message back: from Postgres if it is stored, else from the run that holds it. */
import { WorkflowUpdateFailedError } from "@temporalio/client";
import { senderOf } from "../../activities/contract/guidance.ts";
import { reasonOf } from "../../activities/contract/errors.ts";
import { dropParked } from "../../activities/store/guidance.ts";
import type { SessionRow } from "../../activities/store/reading.ts";
import { askWithin, NoAnswer } from "../../temporal/with-timeout.ts";
import { withdrawMessageUpdate, type WithdrawnMessage } from "../../workflows/messages.ts";
import type { Services } from "../connect/connection.ts";
import { ClientError, exitCodes, missing, notPossible } from "../console/errors.ts";
import { recordNow } from "./record-action.ts";
import { withRunning } from "./running-session.ts";
import { readStatus } from "./session-status.ts";
import { hasEnded } from "./start-session.ts";

const REPLY_MS = 5_000;

/** @throws ClientError (impossible) if the agent has read it already, (missing) if no worker answers */
export async function withdrawMessage(services: Services, row: SessionRow, id: string): Promise<void> {
  const { db } = services.store;
  const isParked = await dropParked(db, row.id, id);
  if (!hasEnded(row)) await informRun(services, row, { id, ...(isParked ? { parked: true } : {}) });
  else if (!isParked) throw tooLate(row.id, "the session has ended");
  const data = { id, ...senderOf({ by: services.user }) };
  await recordNow(services, row, (step) => ({ type: "message:withdrawn", step, data }));
}

/**
 * Takes back every message that waits, oldest first; those that the agent reads meanwhile stay with it.
 * @returns the ids of those taken back
 * @throws ClientError (missing) if no worker answers
 */
export async function withdrawAll(services: Services, row: SessionRow): Promise<string[]> {
  const withdrawn: string[] = [];
  const tried = new Set<string>();
  for (;;) {
    // The run shows the oldest alone if there are many.
    const left = (await readStatus(services, row)).queue.filter(({ id }) => !tried.has(id));
    if (left.length === 0) return withdrawn;
    for (const { id } of left) {
      tried.add(id);
      if (await isWithdrawn(services, row, id)) withdrawn.push(id);
    }
  }
}

async function isWithdrawn(services: Services, row: SessionRow, id: string): Promise<boolean> {
  try {
    await withdrawMessage(services, row, id);
    return true;
  } catch (error) {
    if (error instanceof ClientError && error.exitCode === exitCodes.impossible) return false;
    throw error;
  }
}

async function informRun(services: Services, row: SessionRow, message: WithdrawnMessage): Promise<void> {
  try {
    await withRunning(services, row, (handle) =>
      askWithin(handle.client, REPLY_MS, () =>
        handle.executeUpdate(withdrawMessageUpdate, { args: [message] }),
      ),
    );
  } catch (error) {
    // Its row is marked: it is not delivered, whether or not the run knows.
    if (message.parked) return;
    if (error instanceof WorkflowUpdateFailedError) throw tooLate(row.id, reasonOf(error.cause ?? error));
    if (error instanceof NoAnswer) {
      throw missing(
        `No worker answered for ${row.id}, so the message may still be read.`,
        `Start a worker (longhaul worker), then see what waits: longhaul queue ${row.id}`,
      );
    }
    throw error;
  }
}

function tooLate(id: string, reason: string) {
  return notPossible(`Too late for ${id}: ${reason}`, `Say something else: longhaul say ${id} "…"`);
}
