/** `longhaul undo-compaction ID`: the messages of the newest compaction round are in view again. */
import type { Command } from "commander";
import { plural, tokens } from "../console/format.ts";
import type { Output } from "../console/output.ts";
import { undoCompaction } from "../sessions/compact-session.ts";
import { SESSION, withSession } from "../sessions/with-session.ts";

export function undoCompactionCommand(command: Command, output: Output) {
  command.argument("<id>", SESSION).option("--json", "one JSON document");
  return (reference: string, flags: { readonly json?: boolean }) =>
    withSession(reference, async (services, row) => {
      const { id } = row;
      const undone = await undoCompaction(services, row);
      if (flags.json === true) output.json({ id, ...undone });
      if ("requested" in undone) {
        output.note(
          `${id} undoes round ${undone.round} at the next step boundary; longhaul watch ${id} shows it.\n`,
        );
        return;
      }
      const { round, restored, tokensBefore, tokensAfter } = undone;
      output.note(
        `Round ${round} of ${id} is undone: ${plural(restored, "message")} in view again, ${tokens(tokensAfter)} → ${tokens(tokensBefore)} tokens. The summary is kept, marked as undone.\n`,
      );
    });
}
