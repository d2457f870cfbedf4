/** `longhaul interrupt ID [MESSAGE]`: aborts the step in flight; the session goes on with its queue. */
import type { Command } from "commander";
import { tellNoWorker } from "../connect/no-worker.ts";
import { clientSanitizer } from "../config/config.ts";
import { usageError } from "../console/errors.ts";
import { describeKept } from "../sessions/describe-kept.ts";
import { interruptSession } from "../sessions/interrupt-session.ts";
import type { Output } from "../console/output.ts";
import { processStdin, readMessage } from "../sessions/task-input.ts";
import { SESSION, withWorkingSession } from "../sessions/with-session.ts";

/** Longer ones go through `say`, which stores them. */
const MAX_BYTES = 16_384;

export function interruptCommand(command: Command, output: Output) {
  command
    .argument("<id>", SESSION)
    .argument("[message...]", "what to do instead; - reads it from stdin")
    .option("--json", "one JSON document");
  return async (reference: string, words: readonly string[], flags: { readonly json?: boolean }) => {
    const text = words.length === 0 ? undefined : await readMessage(words, processStdin());
    if (text !== undefined && Buffer.byteLength(text) > MAX_BYTES) {
      throw usageError(
        `The message has more than ${MAX_BYTES} bytes: nothing was sent.`,
        `Say it first (longhaul say ${reference} -), then interrupt without a message.`,
      );
    }
    const message = text === undefined ? undefined : clientSanitizer().clean(text);
    await withWorkingSession(reference, async (services, row) => {
      const { id } = row;
      await tellNoWorker(services, output);
      const interrupted = await interruptSession(services, row, message);
      if (flags.json === true) output.json({ id, ...interrupted });
      else if (interrupted.acknowledged)
        output.note(`${id} is interrupted and goes on with its queue. ${describeKept(interrupted)}\n`);
      else
        output.note(
          "No worker has taken the interrupt yet; Temporal keeps it until one does (longhaul worker).\n",
        );
    });
  };
}
