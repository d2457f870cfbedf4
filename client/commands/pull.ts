/** `longhaul pull ID DIR`: the session's files, as last saved. */
import { resolve } from "node:path";
import { Command } from "commander";
import { openServices } from "../connection.ts";
import { exitCodes, notPossible, type ExitCode } from "../errors.ts";
import type { Output } from "../output.ts";
import { pullWorkspace } from "../pull-workspace.ts";
import { plural } from "../render/format.ts";
import { requireSession } from "../require-session.ts";

export function pullCommand(output: Output, done: (code: ExitCode) => void): Command {
  return new Command("pull")
    .description("copy a session's files, as last saved, into a folder")
    .argument("<id>", "session")
    .argument("<dir>", "folder; made where it is missing")
    .option("--force", "write over files that are there and differ")
    .action(async (id: string, dir: string, flags: { force?: boolean }) =>
      done(await pull(id, dir, flags, output)),
    );
}

async function pull(id: string, dir: string, flags: { force?: boolean }, output: Output): Promise<ExitCode> {
  const services = await openServices();
  try {
    await requireSession(services, id);
    const pulled = await pullWorkspace(services.store, id, dir, { force: flags.force === true });
    if (pulled === undefined) throw notPossible(`No files of ${id} were saved yet.`);
    for (const path of pulled.skipped)
      output.note(`left out: ${path}, a link out of the workspace or a name that is no UTF-8\n`);
    output.note(`${plural(pulled.files, "file")} in ${resolve(dir)}\n`);
    return exitCodes.completed;
  } finally {
    await services.close();
  }
}
