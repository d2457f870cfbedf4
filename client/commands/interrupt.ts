/** `longhaul interrupt ID [MESSAGE]`: breaks off the step in flight; the session goes on with its queue. */
import { Command } from "commander";
import { clientSanitizer } from "../config/config.ts";
import { openServices } from "../connect/connection.ts";
import { exitCodes, usageError, type ExitCode } from "../console/errors.ts";
import { interruptSession } from "../sessions/interrupt-session.ts";
import { keptText } from "../sessions/kept-text.ts";
import type { Output } from "../console/output.ts";
import { processStdin, readMessage } from "../sessions/task-input.ts";

/** Longer ones go through `say`, which stores them. */
const MAX_BYTES = 16_384;

export function interruptCommand(output: Output, done: (code: ExitCode) => void): Command {
  return new Command("interrupt")
    .description("abort the step in flight and continue, with a message if one is given")
    .argument("<id>", "session")
    .argument("[message...]", "what to do instead; - reads it from stdin")
    .option("--json", "one JSON document")
    .action(async (id: string, words: string[], flags: { json?: boolean }) =>
      done(await interrupt(id, words, flags, output)),
    );
}

async function interrupt(
  id: string,
  words: readonly string[],
  flags: { json?: boolean },
  output: Output,
): Promise<ExitCode> {
  const text = words.length === 0 ? undefined : await readMessage(words, processStdin());
  if (text !== undefined && Buffer.byteLength(text) > MAX_BYTES) {
    throw usageError(
      `The message has more than ${MAX_BYTES} bytes: nothing was sent.`,
      `Say it first (longhaul say ${id} -), then interrupt without a message.`,
    );
  }
  const services = await openServices();
  try {
    const interrupted = await interruptSession(
      services,
      id,
      text === undefined ? undefined : clientSanitizer().clean(text),
    );
    if (flags.json === true) output.json({ id, ...interrupted });
    else if (interrupted.acknowledged)
      output.note(`${id} is interrupted and goes on with its queue. ${keptText(interrupted)}\n`);
    else
      output.note(
        "No worker has taken the interrupt yet; Temporal keeps it until one does (longhaul worker).\n",
      );
    return exitCodes.completed;
  } finally {
    await services.close();
  }
}
