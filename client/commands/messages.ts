/** `longhaul messages ID`: the conversation as text. */
import type { Command } from "commander";
import { readWhole } from "../../activities/store/reading.ts";
import type { Output } from "../console/output.ts";
import { productVersion } from "../console/program.ts";
import { exportDocument } from "../sessions/session-export.ts";
import { trajectoryDocument, isSaid, transcriptText } from "../sessions/transcript.ts";
import { SESSION, withSession } from "../sessions/with-session.ts";

export function messagesCommand(command: Command, output: Output) {
  command
    .argument("<id>", SESSION)
    .option("--full", "whole results, not only their last lines")
    .option("--json", "the messages as they are stored, one JSON document");
  return (reference: string, flags: { readonly full?: boolean; readonly json?: boolean }) =>
    withSession(reference, async (services, row) => {
      const whole = await readWhole(services.store.db, row.id);
      if (flags.json === true) {
        output.json({ id: row.id, messages: exportDocument(row, whole).messages }, 2);
        return;
      }
      const { steps } = trajectoryDocument(row, whole, productVersion());
      // The prompt is long, and the same in every session.
      const shown = flags.full === true ? steps : steps.filter(isSaid);
      output.result(
        transcriptText(shown, { full: flags.full === true, style: output.style, owner: row.owner }),
      );
    });
}
