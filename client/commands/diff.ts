/** `longhaul diff ID`: what a session changed in the files that were put in. */
import type { Command } from "commander";
import { readWorkspace } from "../../activities/store/checkpoints.ts";
import { notPossible } from "../console/errors.ts";
import type { Output } from "../console/output.ts";
import { plural, visible } from "../console/format.ts";
import { SESSION, withSession } from "../sessions/with-session.ts";
import { patchFiles } from "../workspace/patch-files.ts";
import { diffWorkspaces } from "../workspace/workspace-diff.ts";

export function diffCommand(command: Command, output: Output) {
  command
    .argument("<id>", SESSION)
    .option("--json", "files with their added and removed lines, and the patch, as one JSON document");
  return (reference: string, flags: { readonly json?: boolean }) =>
    withSession(reference, async ({ store }, { id }) => {
      const after = await readWorkspace(store.db, id);
      if (after === undefined) throw notPossible(`No files of ${id} have been saved yet.`);
      const before = (await readWorkspace(store.db, id, { atStep: 0 })) ?? [];
      const { patch, changed } = diffWorkspaces(before, after, { binaries: "bytes" });
      if (flags.json === true) {
        const files = patchFiles(patch).map(({ path, added, removed }) => ({ path, added, removed }));
        output.json({ id, changed, files, patch });
        return;
      }
      // A terminal shows what would steer it; a file or a pipe gets the bytes that can be applied.
      output.result(output.isTerminal ? visible(patch) : patch);
      output.note(`${plural(changed, "file")} changed\n`);
    });
}
