/** `longhaul resume ID [MESSAGE]`: continues a session that has ended; as `say`, with a default message. */
import type { Command } from "commander";
import { notPossible } from "../console/errors.ts";
import type { Output } from "../console/output.ts";
import { sendGuidance } from "../sessions/send-guidance.ts";
import { hasEnded } from "../sessions/start-session.ts";
import { processStdin, readMessage } from "../sessions/task-input.ts";
import { SESSION, withWorkingSession } from "../sessions/with-session.ts";
import { sentNotes } from "../sessions/sent-notes.ts";

const CONTINUE = "Continue where you left off.";

export function resumeCommand(command: Command, output: Output) {
  command
    .argument("<id>", SESSION)
    .argument("[message...]", `what to say; default: ${CONTINUE}`)
    .option("--json", "one JSON document");
  return async (reference: string, words: readonly string[], flags: { readonly json?: boolean }) => {
    const text = words.length === 0 ? CONTINUE : await readMessage(words, processStdin());
    await withWorkingSession(reference, async (services, row) => {
      const { id } = row;
      if (!hasEnded(row))
        throw notPossible(`${id} has not ended (${row.status}).`, `Guide it: longhaul say ${id} "…"`);
      const sent = await sendGuidance(services, row, { id: undefined, text, attachments: [] });
      if (flags.json === true) output.json({ id, ...sent });
      for (const line of await sentNotes(services, id, sent)) output.note(`${line}\n`);
    });
  };
}
