/** `longhaul apply ID`: a session's change on a new branch of this checkout. */
import type { Command } from "commander";
import { visible } from "../console/format.ts";
import { plural } from "../../activities/text/format.ts";
import type { Output } from "../console/output.ts";
import { parseBranch } from "../sessions/flag-values.ts";
import { recordAction, SESSION, withSession } from "../sessions/with-session.ts";
import { applyOnBranch, commitMessage } from "../workspace/apply-on-branch.ts";
import { sessionDiff } from "../workspace/pull-workspace.ts";

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
          : `${plural(changed, "file")} changed, staged on the new branch ${branch}. Git did not commit them:\n${visible(applied.why)}\nTo finish: git commit -F '${applied.messageFile}'\n`,
      );
    });
}
