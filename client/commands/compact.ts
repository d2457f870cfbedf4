/** `longhaul compact` and `undo-compaction`: old messages are replaced by a summary, or are in view again. */
import { shellWord } from "../console/format.ts";
import type { Command } from "commander";
import type { Output } from "../console/output.ts";
import { compactionFocus, compactSession, undoCompaction } from "../sessions/compact-session.ts";
import { SESSION, withWorkingSession, withSession } from "../sessions/with-session.ts";
import { plural, tokens } from "../../activities/text/format.ts";

/** `longhaul compact ID [FOCUS]`: a summary of old messages at the next step boundary. */
export function compactCommand(command: Command, output: Output) {
  command
    .argument("<id>", SESSION)
    .argument("[focus...]", "what the summary must keep in view")
    .option("--json", "one JSON document");
  return async (reference: string, focusWords: readonly string[], flags: { readonly json?: boolean }) => {
    const focus = compactionFocus(focusWords.join(" "));
    await withWorkingSession(reference, async (services, row) => {
      const { id } = row;
      await compactSession(services, row, focus);
      if (flags.json === true) output.json({ id, requested: true });
      output.note(
        `${id} compacts its context at the next step boundary; longhaul watch ${shellWord(id)} shows the result.\n`,
      );
    });
  };
}

/** `longhaul undo-compaction ID`: the messages of the newest compaction round are in view again. */
export function undoCompactionCommand(command: Command, output: Output) {
  command.argument("<id>", SESSION).option("--json", "one JSON document");
  return (reference: string, flags: { readonly json?: boolean }) =>
    withSession(reference, async (services, row) => {
      const { id } = row;
      const undone = await undoCompaction(services, row);
      if (flags.json === true) output.json({ id, ...undone });
      if ("requested" in undone) {
        output.note(
          `${id} undoes round ${undone.round} at the next step boundary; longhaul watch ${shellWord(id)} shows it.\n`,
        );
        return;
      }
      const { round, restored, tokensBefore, tokensAfter } = undone;
      output.note(
        `Round ${round} of ${id} is undone: ${plural(restored, "message")} in view again, ${tokens(tokensAfter)} → ${tokens(tokensBefore)} tokens. The summary is kept, marked as undone.\n`,
      );
    });
}
