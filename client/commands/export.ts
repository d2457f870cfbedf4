/** `longhaul export ID`, `messages ID` and `report ID`: a session as one JSON document, as text, and as one HTML file. */
import { shellWord } from "../console/format.ts";
import { Option, type Command } from "commander";
import { readWhole } from "../../activities/store/reading.ts";
import type { Output } from "../console/output.ts";
import { productVersion } from "../console/program.ts";
import { exportDocument, wholeOutputText } from "../sessions/session-export.ts";
import { trajectoryDocument, isSaid, transcriptText } from "../sessions/transcript.ts";
import { SESSION, withSession } from "../sessions/with-session.ts";
import { writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { unwritable } from "../console/errors.ts";
import { reportPage } from "../report/report-page.ts";
import { gather } from "../report/report-sources.ts";

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

export function messagesCommand(command: Command, output: Output) {
  command
    .argument("<id>", SESSION)
    .option("--full", "whole results, not only their last lines")
    .option(
      "--output <handle>",
      "instead, one whole output: of a call, or of a command that verified the work",
    )
    .option("--json", "the messages as they are stored, one JSON document");
  return (reference: string, flags: MessagesFlags) =>
    withSession(reference, async (services, row) => {
      if (flags.output !== undefined) {
        const text = await wholeOutputText(services, row, flags.output);
        if (flags.json === true) output.json({ id: row.id, handle: flags.output, text }, 2);
        else output.result(text);
        return;
      }
      const whole = await readWhole(services.store.db, row.id);
      if (flags.json === true) {
        output.json({ id: row.id, messages: exportDocument(row, whole).messages }, 2);
        return;
      }
      const { steps } = trajectoryDocument(row, whole, productVersion());
      // The prompt is long, and the same in every session.
      const shownSteps = flags.full === true ? steps : steps.filter(isSaid);
      output.result(
        transcriptText(shownSteps, { full: flags.full === true, style: output.style, owner: row.owner }),
      );
    });
}

interface MessagesFlags {
  readonly full?: boolean;
  readonly json?: boolean;
  readonly output?: string;
}

export function reportCommand(command: Command, output: Output) {
  command
    .argument("<id>", SESSION)
    .argument("[file]", "output file, default ID.html in this folder; - is standard output");
  return (reference: string, file: string | undefined) =>
    withSession(reference, async (services, { id }) => {
      const page = reportPage(await gather(services, id));
      if (file === "-") return output.result(page);
      const path = resolve(file ?? `${id}.html`);
      await writeFile(path, page).catch((error: unknown) => {
        throw unwritable(path, error, `Name another file: longhaul report ${shellWord(id)} FILE`);
      });
      output.result(`${path}\n`);
    });
}
