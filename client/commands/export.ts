/** `longhaul export ID`: a session as one JSON document. */
import { Option, type Command } from "commander";
import { readWhole } from "../../activities/store/reading.ts";
import type { Output } from "../console/output.ts";
import { productVersion } from "../console/program.ts";
import { exportDocument } from "../sessions/session-export.ts";
import { trajectoryDocument } from "../sessions/transcript.ts";
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
    .option("--json", "changes nothing: the output is always one JSON document");
  return (reference: string, { format }: { readonly format: "own" | "atif" }) =>
    withSession(reference, async (services, row) => {
      const whole = await readWhole(services.store.db, row.id);
      const document =
        format === "atif" ? trajectoryDocument(row, whole, productVersion()) : exportDocument(row, whole);
      output.json(document, 2);
    });
}
