/** `longhaul diff ID`: a session's change as a patch. */
import type { Command } from "commander";
import { visible } from "../console/format.ts";
import { plural } from "../../activities/text/format.ts";
import type { Output } from "../console/output.ts";
import { SESSION, withSession } from "../sessions/with-session.ts";
import { patchFiles } from "../workspace/workspace-diff.ts";
import { sessionDiff } from "../workspace/pull-workspace.ts";

const FILTERED =
  "The patch is of the files in the working tree. Git stores some of them otherwise (line ends, ident, encodings or filters), so `git apply` may refuse it; longhaul apply takes both.\n";

export function diffCommand(command: Command, output: Output) {
  command
    .argument("<id>", SESSION)
    .option("--json", "files with their added and removed lines, and the patch, as one JSON document");
  return (reference: string, flags: { readonly json?: boolean }) =>
    withSession(reference, async ({ store }, row) => {
      const { id } = row;
      const isRead = output.isRead && flags.json !== true;
      const { patch, changed, notes, isFiltered } = await sessionDiff(store, row, isRead);
      for (const note of notes) output.note(`${note}\n`);
      if (isFiltered && changed > 0) output.note(FILTERED);
      if (flags.json === true) {
        const files = patchFiles(patch).map(({ path, added, removed }) => ({ path, added, removed }));
        output.json({ id, changed, files, patch });
        return;
      }
      // A terminal gets escaped control characters; a file or a pipe gets the exact bytes, which can be applied.
      output.result(output.isTerminal ? visible(patch) : patch);
      output.note(`${plural(changed, "file")} changed\n`);
    });
}
