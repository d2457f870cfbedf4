/** `longhaul export ID` and `messages ID`: a session as one JSON document, and its conversation as text. */
import { Option, type Command } from "commander";
import { readWhole } from "../../activities/store/reading.ts";
import type { Output } from "../console/output.ts";
import { productVersion } from "../console/product-version.ts";
import { exportDocument } from "../sessions/session-export.ts";
import { trajectoryDocument, isSaid } from "../sessions/trajectory.ts";
import { transcriptText } from "../sessions/transcript-text.ts";
import { SESSION, withSession } from "../sessions/with-session.ts";

export function exportCommand(command: Command, output: Output) {
  command
    .argument("<id>", SESSION)
    .addOption(
      new Option(
        "--format <format>",
        "own: everything; atif: the current conversation as other tools read it",
      )
        .choices(["own", "atif"])
        .default("own"),
    )
    .option("--json", "one JSON document, as it is without the flag");
  return (reference: string, { format }: { readonly format: "own" | "atif" }) =>
    withSession(reference, async (services, row) => {
      const whole = await readWhole(services.store.db, row.id);
      const document =
        format === "atif" ? trajectoryDocument(row, whole, productVersion()) : exportDocument(row, whole);
      output.json(document, 2);
    });
}

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
