/** `longhaul pull ID DIR`: the session's files, as last saved. */
import { resolve } from "node:path";
import { Command } from "commander";
import { openServices } from "../connect/connection.ts";
import { exitCodes, notPossible, type ExitCode } from "../console/errors.ts";
import type { Output } from "../console/output.ts";
import { pullNotes, pullWorkspace } from "../workspace/pull-workspace.ts";
import { plural } from "../console/format.ts";
import { requireSession } from "../sessions/require-session.ts";

export function pullCommand(output: Output, done: (code: ExitCode) => void): Command {
  return new Command("pull")
    .description("copy a session's files, as last saved, into a folder")
    .argument("<id>", "session")
    .argument("<dir>", "folder; made where it is missing")
    .option("--force", "write over files that are there and differ")
    .option(
      "--git",
      "write Git configuration and hooks as the agent left them: Git may run programs they name",
    )
    .action(async (id: string, dir: string, flags: PullFlags) => done(await pull(id, dir, flags, output)));
}

interface PullFlags {
  readonly force?: boolean;
  readonly git?: boolean;
}

async function pull(id: string, dir: string, flags: PullFlags, output: Output): Promise<ExitCode> {
  const services = await openServices();
  try {
    await requireSession(services, id);
    const pulled = await pullWorkspace(services.store, id, dir, flags);
    if (pulled === undefined) throw notPossible(`No files of ${id} have been saved yet.`);
    for (const line of pullNotes(pulled, dir, `longhaul pull ${id} DIR --git`)) output.note(`${line}\n`);
    output.note(`${plural(pulled.files, "file")} in ${resolve(dir)}\n`);
    return exitCodes.completed;
  } finally {
    await services.close();
  }
}
