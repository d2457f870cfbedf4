/** `longhaul interrupt ID [MESSAGE]`: aborts the step in flight and says what was kept. */
import type { Command } from "commander";
import { warnWithoutWorker } from "../connect/no-worker.ts";
import type { Output } from "../console/output.ts";
import { interruptMessage, interruptSession } from "../sessions/interrupt-session.ts";
import { processStdin, readMessage } from "../sessions/task-input.ts";
import { SESSION, withWorkingSession } from "../sessions/with-session.ts";
import { describeKept } from "../sessions/describe-kept.ts";
import { untakenNote } from "../sessions/sent-notes.ts";

export function interruptCommand(command: Command, output: Output) {
  command
    .argument("<id>", SESSION)
    .argument("[message...]", "what to do instead; - reads it from stdin")
    .option("--json", "one JSON document");
  return async (reference: string, words: readonly string[], flags: { readonly json?: boolean }) => {
    const text = words.length === 0 ? undefined : await readMessage(words, processStdin());
    const message = text === undefined ? undefined : interruptMessage(text, reference);
    await withWorkingSession(reference, async (services, row) => {
      const { id } = row;
      await warnWithoutWorker(services, output);
      const interrupted = await interruptSession(services, row, message);
      if (flags.json === true) output.json({ id, ...interrupted });
      else if (interrupted.acknowledged)
        output.note(`${id} is interrupted and continues with its queue. ${describeKept(interrupted)}\n`);
      else output.note(`${untakenNote("the interrupt")}\n`);
    });
  };
}
