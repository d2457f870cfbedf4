/** `longhaul compact ID [FOCUS]`: a summary of old messages at the next step boundary. */
import type { Command } from "commander";
import { compactSignal } from "../../workflows/messages.ts";
import { clientSanitizer } from "../config/config.ts";
import { usageError } from "../console/errors.ts";
import type { Output } from "../console/output.ts";
import { recordAction } from "../sessions/record-action.ts";
import { withRunning } from "../sessions/running-session.ts";
import { SESSION, withWorkingSession } from "../sessions/with-session.ts";

const MAX_FOCUS_CHARS = 2_000;

export function compactCommand(command: Command, output: Output) {
  command
    .argument("<id>", SESSION)
    .argument("[focus...]", "what the summary must keep in view")
    .option("--json", "one JSON document");
  return async (reference: string, words: readonly string[], flags: { readonly json?: boolean }) => {
    const focus = words.join(" ").trim();
    if (focus.length > MAX_FOCUS_CHARS)
      throw usageError(`The focus has ${focus.length} characters; at most ${MAX_FOCUS_CHARS} are allowed.`);
    const request = focus === "" ? undefined : { focus: clientSanitizer().clean(focus) };
    await withWorkingSession(reference, async (services, row) => {
      const { id } = row;
      await withRunning(services, row, (handle) => handle.signal(compactSignal, request));
      await recordAction(services, row, "compact");
      if (flags.json === true) output.json({ id, requested: true });
      output.note(
        `${id} compacts its context at the next step boundary; longhaul watch ${id} shows the result.\n`,
      );
    });
  };
}
