/** `longhaul export ID`: everything of a session as one JSON document. */
import { Command } from "commander";
import { readWhole } from "../../activities/store/reading.ts";
import { openServices } from "../connection.ts";
import { exitCodes, type ExitCode } from "../errors.ts";
import type { Output } from "../output.ts";
import { requireSession } from "../require-session.ts";
import { exportDocument } from "../session-export.ts";

export function exportCommand(output: Output, done: (code: ExitCode) => void): Command {
  return new Command("export")
    .description("session, messages, tool calls, compaction rounds and model calls as one JSON document")
    .argument("<id>", "session")
    .action(async (id: string) => done(await exportSession(id, output)));
}

async function exportSession(id: string, output: Output): Promise<ExitCode> {
  const services = await openServices();
  try {
    const row = await requireSession(services, id);
    output.json(exportDocument(row, await readWhole(services.store.db, id)), 2);
    return exitCodes.completed;
  } finally {
    await services.close();
  }
}
