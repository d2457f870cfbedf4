/** `longhaul compact ID [FOCUS]`: a summary of old messages at the next step boundary. */
import type { Command } from "commander";
import type { Output } from "../console/output.ts";
import { compactionFocus, compactSession } from "../sessions/compact-session.ts";
import { SESSION, withWorkingSession } from "../sessions/with-session.ts";

export function compactCommand(command: Command, output: Output) {
  command
    .argument("<id>", SESSION)
    .argument("[focus...]", "what the summary must keep in view")
    .option("--json", "one JSON document");
  return async (reference: string, words: readonly string[], flags: { readonly json?: boolean }) => {
    const focus = compactionFocus(words.join(" "));
    await withWorkingSession(reference, async (services, row) => {
      const { id } = row;
      await compactSession(services, row, focus);
      if (flags.json === true) output.json({ id, requested: true });
      output.note(
        `${id} compacts its context at the next step boundary; longhaul watch ${id} shows the result.\n`,
      );
    });
  };
}
