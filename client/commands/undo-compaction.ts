/** `longhaul undo-compaction ID`: the messages of the newest compaction round are in view again. */
import { randomUUID } from "node:crypto";
import type { Command } from "commander";
import { readFigures } from "../../activities/store/reading.ts";
import { undoWhileEnded } from "../../activities/store/undo-compaction.ts";
import { undoCompactionSignal } from "../../workflows/messages.ts";
import { unlessGone } from "../connect/describe-run.ts";
import { notPossible } from "../console/errors.ts";
import { plural, tokens } from "../console/format.ts";
import type { Output } from "../console/output.ts";
import { recordAction } from "../sessions/record-action.ts";
import { SESSION, withSession } from "../sessions/with-session.ts";

export function undoCompactionCommand(command: Command, output: Output) {
  command.argument("<id>", SESSION).option("--json", "one JSON document");
  return (reference: string, flags: { readonly json?: boolean }) =>
    withSession(reference, async (services, row) => {
      const { id } = row;
      const { db } = services.store;
      const { compactionRounds = 0, step = 0 } = (await readFigures(db, [id])).get(id) ?? {};
      if (compactionRounds === 0) throw nothingToUndo(id);
      const handle = (await services.temporal.client()).workflow.getHandle(id);
      await recordAction(services, row, "undo-compaction");
      const signalled = await unlessGone(() => handle.signal(undoCompactionSignal).then(() => true));
      const say = (document: object) => (flags.json === true ? output.json({ id, ...document }) : undefined);
      if (signalled) {
        say({ requested: true, round: compactionRounds });
        output.note(
          `${id} undoes round ${compactionRounds} at the next step boundary; longhaul watch ${id} shows it.\n`,
        );
        return;
      }
      const undone = await undoWhileEnded(services.store, { id, epoch: row.epoch, step }, randomUUID());
      if (undone === undefined) throw nothingToUndo(id);
      const { round, restored, tokensBefore, tokensAfter } = undone;
      say({ undone: true, round, restored, tokensBefore, tokensAfter });
      output.note(
        `Round ${round} of ${id} is undone: ${plural(restored, "message")} in view again, ${tokens(tokensAfter)} → ${tokens(tokensBefore)} tokens. The summary is kept, marked as undone.\n`,
      );
    });
}

function nothingToUndo(id: string) {
  return notPossible(`${id} has no compaction round to undo.`, `See what is in view: longhaul context ${id}`);
}
