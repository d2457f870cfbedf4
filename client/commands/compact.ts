/** `longhaul compact ID [FOCUS]` and `undo-compaction ID`: a summary at the next step boundary; the view before the newest one. */
import { randomUUID } from "node:crypto";
import type { Command } from "commander";
import { readFigures } from "../../activities/store/reading.ts";
import { undoWhileEnded } from "../../activities/store/undo-compaction.ts";
import { compactSignal, undoCompactionSignal } from "../../workflows/messages.ts";
import { clientSanitizer } from "../config/config.ts";
import { unlessGone } from "../connect/describe-run.ts";
import { usageError, notPossible } from "../console/errors.ts";
import { plural, tokens } from "../console/format.ts";
import type { Output } from "../console/output.ts";
import { recordAction } from "../sessions/record-action.ts";
import { withRunning } from "../sessions/running-session.ts";
import { SESSION, withWorkingSession, withSession } from "../sessions/with-session.ts";

const MAX_FOCUS_CHARS = 2_000;

export function compactCommand(command: Command, output: Output) {
  command
    .argument("<id>", SESSION)
    .argument("[focus...]", "what the summary must keep in view")
    .option("--json", "one JSON document");
  return async (reference: string, words: readonly string[], flags: { readonly json?: boolean }) => {
    const focus = words.join(" ").trim();
    if (focus.length > MAX_FOCUS_CHARS)
      throw usageError(`The focus has ${focus.length} characters; at most ${MAX_FOCUS_CHARS} are allowed.`);
    const request = focus === "" ? undefined : { focus: clientSanitizer().clean(focus) };
    await withWorkingSession(reference, async (services, row) => {
      const { id } = row;
      await withRunning(services, row, (handle) => handle.signal(compactSignal, request));
      await recordAction(services, row, "compact");
      if (flags.json === true) output.json({ id, requested: true });
      output.note(
        `${id} compacts its context at the next step boundary; longhaul watch ${id} shows the result.\n`,
      );
    });
  };
}

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
        `Round ${round} of ${id} is undone: ${plural(restored, "message")} in view again, ${tokens(tokensAfter)} → ${tokens(tokensBefore)} tokens. The summary is kept, marked.\n`,
      );
    });
}

function nothingToUndo(id: string) {
  return notPossible(`${id} has no compaction round to undo.`, `See what is in view: longhaul context ${id}`);
}
