/** `longhaul queue ID`: the messages that wait for the next step. */
import type { Command } from "commander";
import { oneLine } from "../console/format.ts";
import type { Output } from "../console/output.ts";
import { readStatus } from "../sessions/session-status.ts";
import { SESSION, withSession } from "../sessions/with-session.ts";

const TEXT_CHARS = 100;

export function queueCommand(command: Command, output: Output) {
  command.argument("<id>", SESSION).option("--json", "one JSON document");
  return (reference: string, flags: { readonly json?: boolean }) =>
    withSession(reference, async (services, row) => {
      const { queue } = await readStatus(services, row);
      if (flags.json === true) {
        output.json({ id: row.id, queue }, 2);
        return;
      }
      const lines = queue.map(
        ({ id, text, queuedAt }, place) => `${place + 1}. ${id}  ${queuedAt}  ${oneLine(text, TEXT_CHARS)}`,
      );
      output.result(lines.map((line) => `${line}\n`).join(""));
      output.note(
        queue.length === 0
          ? `Nothing waits for ${row.id}.\n`
          : `Take one back: longhaul unsay ${row.id} ${queue.length}\n`,
      );
    });
}
