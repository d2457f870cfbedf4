/** `longhaul pull ID DIR`: a session's files, as last saved, in a folder. */
import { resolve } from "node:path";
import type { Command } from "commander";
import { plural } from "../../activities/text/format.ts";
import type { Output } from "../console/output.ts";
import { recordAction, SESSION, withSession } from "../sessions/with-session.ts";
import { noFiles, pullNotes, pullWorkspace } from "../workspace/pull-workspace.ts";

interface PullFlags {
  readonly force?: boolean;
  readonly git?: boolean;
  readonly json?: boolean;
}

export function pullCommand(command: Command, output: Output) {
  command
    .argument("<id>", SESSION)
    .argument("<dir>", "folder; created if it is missing")
    .option("--force", "overwrite existing files that differ")
    .option(
      "--git",
      "write Git configuration and hooks as the agent left them: Git may run programs that they name",
    )
    .option("--json", "one JSON document");
  return (reference: string, dir: string, flags: PullFlags) =>
    withSession(reference, async (services, row) => {
      const { id } = row;
      const pulled = await pullWorkspace(services.store, id, dir, flags);
      if (pulled === undefined) throw noFiles(row);
      await recordAction(services, row, "pull");
      for (const line of pullNotes(pulled, dir, `longhaul pull ${id} ${id} --git`)) output.note(`${line}\n`);
      const { files, skipped, unsafe, untouched } = pulled;
      if (flags.json === true) output.json({ id, folder: resolve(dir), files, skipped, unsafe, untouched });
      output.note(`${plural(pulled.files, "file")} in ${resolve(dir)}\n`);
    });
}
