/** `longhaul delete ID`: removes a session that has ended. */
import { createInterface } from "node:readline/promises";
import type { Command } from "commander";
import { usageError } from "../console/errors.ts";
import { oneLine, present } from "../console/format.ts";
import { plural } from "../../activities/text/format.ts";
import type { Output } from "../console/output.ts";
import { deleteSession, type Deleted } from "../sessions/delete-session.ts";
import { processStdin } from "../sessions/task-input.ts";
import { SESSION, withSession } from "../sessions/with-session.ts";

export function deleteCommand(command: Command, output: Output) {
  command.argument("<id>", SESSION).option("--yes", "do not ask").option("--json", "one JSON document");
  return (reference: string, flags: { readonly yes?: boolean; readonly json?: boolean }) =>
    withSession(reference, async (services, row) => {
      if (flags.yes !== true && !(await isMeant(`Delete ${row.id} (${oneLine(row.task, 60)})?`))) {
        output.note("Nothing was deleted.\n");
        return;
      }
      const deleted = await deleteSession(services, row);
      if (flags.json === true)
        output.json({ id: row.id, deleted: deleted.ids, histories: deleted.histories });
      else for (const line of deletedLines(row.id, deleted)) output.note(`${line}\n`);
    });
}

/** @throws ClientError (usage) if no one can confirm */
async function isMeant(question: string): Promise<boolean> {
  if (processStdin().kind !== "terminal")
    throw usageError(
      "This permanently deletes a session, and there is no terminal to ask for confirmation.",
      "Add --yes.",
    );
  const asked = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(es)?$/i.test(
      (await asked.question(`${question} Its files and messages will be gone. [y/N] `)).trim(),
    );
  } finally {
    asked.close();
  }
}

function deletedLines(id: string, { ids, histories }: Deleted): string[] {
  const family = ids.length === 1 ? "" : ` with ${plural(ids.length - 1, "delegate")}`;
  return present(
    `${id} is deleted${family}. If its sandbox still exists, the worker's next clean-up removes it.`,
    histories.left > 0 &&
      `Temporal did not delete ${plural(histories.left, "history", "histories")} of it (${oneLine(histories.reason ?? "", 200)}); it keeps them until its own retention ends.`,
  );
}
