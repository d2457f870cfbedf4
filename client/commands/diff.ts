/** `longhaul diff ID`: what a session changed in the files that were put in. */
import { Command } from "commander";
import { readWorkspace } from "../../activities/store/checkpoints.ts";
import { openServices } from "../connect/connection.ts";
import { exitCodes, notPossible, type ExitCode } from "../console/errors.ts";
import type { Output } from "../console/output.ts";
import { plural, visible } from "../console/format.ts";
import { requireSession } from "../sessions/require-session.ts";
import { diffWorkspaces } from "../workspace/workspace-diff.ts";

export function diffCommand(output: Output, done: (code: ExitCode) => void): Command {
  return new Command("diff")
    .description("the change against the files that were put in, as a patch")
    .argument("<id>", "session")
    .action(async (id: string) => done(await diff(id, output)));
}

async function diff(id: string, output: Output): Promise<ExitCode> {
  const services = await openServices();
  try {
    await requireSession(services, id);
    const { db } = services.store;
    const after = await readWorkspace(db, id);
    if (after === undefined) throw notPossible(`No files of ${id} have been saved yet.`);
    const before = (await readWorkspace(db, id, { atStep: 0 })) ?? [];
    const { patch, changed } = diffWorkspaces(before, after, { binaries: "bytes" });
    // A terminal shows what would steer it; a file or a pipe gets the bytes that can be applied.
    output.result(output.isTerminal ? visible(patch) : patch);
    output.note(`${plural(changed, "file")} changed\n`);
    return exitCodes.completed;
  } finally {
    await services.close();
  }
}
