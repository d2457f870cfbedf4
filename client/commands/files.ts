/** `longhaul pull ID DIR`, `diff ID` and `apply ID`: a session's files, its change as a patch, and as a branch of this checkout. */
import { resolve } from "node:path";
import type { Command } from "commander";
import { plural } from "../../activities/text/format.ts";
import type { Output } from "../console/output.ts";
import { recordAction, SESSION, withSession } from "../sessions/with-session.ts";
import { noFiles, pullNotes, pullWorkspace, sessionDiff } from "../workspace/pull-workspace.ts";
import { quotedWord, shellWord, visible } from "../console/format.ts";
import { patchFiles } from "../workspace/workspace-diff.ts";
import { parseBranch } from "../sessions/flag-values.ts";
import { applyOnBranch, commitMessage } from "../workspace/apply-on-branch.ts";

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
      for (const line of pullNotes(pulled, dir, `longhaul pull ${shellWord(id)} ${shellWord(id)} --git`))
        output.note(`${line}\n`);
      const { files, skipped, unsafe, untouched } = pulled;
      if (flags.json === true) output.json({ id, folder: resolve(dir), files, skipped, unsafe, untouched });
      output.note(`${plural(pulled.files, "file")} in ${resolve(dir)}\n`);
    });
}

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

export function applyCommand(command: Command, output: Output) {
  command
    .argument("<id>", SESSION)
    .option("--branch <name>", "the new branch (default: longhaul/<id>)", parseBranch);
  return (reference: string, flags: { readonly branch?: string }) =>
    withSession(reference, async (services, row) => {
      const { id } = row;
      const { patch, changed, notes } = await sessionDiff(services.store, row);
      for (const note of notes) output.note(`${note}\n`);
      if (changed === 0) {
        output.note(`${id} changed no file: nothing was applied.\n`);
        return;
      }
      const branch = flags.branch ?? `longhaul/${id}`;
      const message = commitMessage(row.task, id);
      const applied = await applyOnBranch(process.cwd(), { patch, branch, message });
      await recordAction(services, row, "apply");
      output.result(`${branch}\n`);
      output.note(
        applied.committed
          ? `${plural(changed, "file")} changed, on the new branch ${branch}, which is checked out.\n`
          : `${plural(changed, "file")} changed, staged on the new branch ${branch}. Git did not commit them:\n${visible(applied.why)}\nTo finish: git commit -F ${quotedWord(applied.messageFile)}\n`,
      );
    });
}
