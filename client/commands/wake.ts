/** `longhaul wake ID`: ends the wait that the model asked for, without a message; a followed pull request is looked at. */
import { WorkflowUpdateFailedError } from "@temporalio/client";
import type { Command } from "commander";
import { askWithin, NoAnswer } from "../../temporal/patience.ts";
import { wakeUpdate } from "../../workflows/messages.ts";
import type { Services } from "../connect/connection.ts";
import { missing, notPossible } from "../console/errors.ts";
import { shellWord } from "../console/format.ts";
import type { Output } from "../console/output.ts";
import type { SessionRow } from "../../activities/store/reading.ts";
import { wakeFollower } from "../follow/follow-pull-request.ts";
import { sessionHasEnded } from "../sessions/start-session.ts";
import { recordAction, SESSION, withRunning, withWorkingSession } from "../sessions/with-session.ts";

const REPLY_MS = 10_000;

export function wakeCommand(command: Command, output: Output) {
  command.argument("<id>", SESSION).option("--json", "one JSON document");
  return (reference: string, flags: { readonly json?: boolean }) =>
    withWorkingSession(reference, async (services, row) => {
      const looks = sessionHasEnded(row) && (await wakeFollower(services, row));
      if (!looks) await wakeSession(services, row);
      if (flags.json === true) output.json({ id: row.id, woken: true });
      else if (looks) output.note(`The pull request of ${row.id} is looked at now.\n`);
      else output.note(`${row.id} does not wait any more. Watch it: longhaul watch ${shellWord(row.id)}\n`);
    });
}

/** @throws ClientError (impossible) if it does not run, or does not wait at the model's word; (missing) if no worker answers */
async function wakeSession(services: Services, row: SessionRow): Promise<void> {
  try {
    await withRunning(services, row, (handle) =>
      askWithin(handle.client, REPLY_MS, () => handle.executeUpdate(wakeUpdate)),
    );
  } catch (error) {
    if (error instanceof WorkflowUpdateFailedError)
      throw notPossible(
        `${row.id} has no wait that could be ended.`,
        `See what it does: longhaul status ${shellWord(row.id)}`,
      );
    if (error instanceof NoAnswer)
      throw missing(
        `No worker answered for ${row.id}, so its wait goes on.`,
        `Start a worker (longhaul worker), then: longhaul wake ${shellWord(row.id)}`,
      );
    throw error;
  }
  await recordAction(services, row, "wake");
}
