/** `longhaul undo-compaction ID`: the view before the newest round. */
import { randomUUID } from "node:crypto";
import { WorkflowNotFoundError } from "@temporalio/client";
import { Command } from "commander";
import { readFigures } from "../../activities/store/reading.ts";
import { undoWhileEnded } from "../../activities/store/undo-compaction.ts";
import { undoCompactionSignal } from "../../workflows/messages.ts";
import { openServices, type Services } from "../connect/connection.ts";
import { exitCodes, notPossible, type ExitCode } from "../console/errors.ts";
import type { Output } from "../console/output.ts";
import { plural, tokens } from "../console/format.ts";
import { requireSession } from "../sessions/require-session.ts";

export function undoCompactionCommand(output: Output, done: (code: ExitCode) => void): Command {
  return new Command("undo-compaction")
    .description("undo the newest compaction round: the messages it replaced are in view again")
    .argument("<id>", "session")
    .action(async (id: string) => done(await undoCompaction(id, output)));
}

async function undoCompaction(id: string, output: Output): Promise<ExitCode> {
  const services = await openServices();
  try {
    const row = await requireSession(services, id);
    const figures = (await readFigures(services.store.db, [id])).get(id);
    if ((figures?.compactionRounds ?? 0) === 0) throw nothingToUndo(id);
    if (await signalled(services, id)) {
      output.note(
        `${id} takes round ${figures?.compactionRounds} back at the next step boundary; longhaul watch ${id} shows it.\n`,
      );
      return exitCodes.completed;
    }
    const undone = await undoWhileEnded(
      services.store,
      { id, epoch: row.epoch, step: figures?.step ?? 0 },
      randomUUID(),
    );
    if (undone === undefined) throw nothingToUndo(id);
    output.note(
      `Round ${undone.round} of ${id} is taken back: ${plural(undone.restored, "message")} in view again, ${tokens(undone.tokensAfter)} → ${tokens(undone.tokensBefore)} tokens. The summary is kept, marked.\n`,
    );
    return exitCodes.completed;
  } finally {
    await services.close();
  }
}

/** @returns false where the session does not run */
async function signalled(services: Services, id: string): Promise<boolean> {
  const client = await services.temporal.client();
  try {
    await client.workflow.getHandle(id).signal(undoCompactionSignal);
    return true;
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return false;
    throw error;
  }
}

function nothingToUndo(id: string) {
  return notPossible(`${id} has no compaction round to undo.`, `See what is in view: longhaul context ${id}`);
}
