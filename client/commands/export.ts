/** `longhaul export ID`: everything of a session as one JSON document, or its trajectory in a public format. */
import { Command, Option } from "commander";
import { readWhole } from "../../activities/store/reading.ts";
import { openServices } from "../connect/connection.ts";
import { exitCodes, type ExitCode } from "../console/errors.ts";
import type { Output } from "../console/output.ts";
import { productVersion } from "../console/product-version.ts";
import { requireSession } from "../sessions/require-session.ts";
import { exportDocument } from "../sessions/session-export.ts";
import { trajectoryDocument } from "../sessions/trajectory.ts";

export function exportCommand(output: Output, done: (code: ExitCode) => void): Command {
  return new Command("export")
    .description("session, messages, tool calls, compaction rounds and model calls as one JSON document")
    .argument("<id>", "session")
    .addOption(
      new Option("--format <format>", "own: everything; atif: the live line as other tools read it")
        .choices(["own", "atif"])
        .default("own"),
    )
    .action(async (id: string, flags: { format: "own" | "atif" }) =>
      done(await exportSession(id, flags.format, output)),
    );
}

async function exportSession(id: string, format: "own" | "atif", output: Output): Promise<ExitCode> {
  const services = await openServices();
  try {
    const row = await requireSession(services, id);
    const whole = await readWhole(services.store.db, id);
    output.json(
      format === "atif" ? trajectoryDocument(row, whole, productVersion()) : exportDocument(row, whole),
      2,
    );
    return exitCodes.completed;
  } finally {
    await services.close();
  }
}
