/** `longhaul interrupt ID [MESSAGE]`: breaks off the step in flight; the session goes on with its queue. */
import { randomUUID } from "node:crypto";
import { Command } from "commander";
import { interruptSignal } from "../../workflows/messages.ts";
import { openServices } from "../connection.ts";
import { exitCodes, usageError, type ExitCode } from "../errors.ts";
import type { Output } from "../output.ts";
import { withRunning } from "../running-session.ts";
import { processStdin, readMessage } from "../task-input.ts";

/** Longer ones go through `say`, which stores them. */
const MAX_BYTES = 16_384;

export function interruptCommand(output: Output, done: (code: ExitCode) => void): Command {
  return new Command("interrupt")
    .description("break off the step in flight and go on, with a message if one is given")
    .argument("<id>", "session")
    .argument("[message...]", "what to do instead; - reads it from stdin")
    .action(async (id: string, words: string[]) => done(await interrupt(id, words, output)));
}

async function interrupt(id: string, words: readonly string[], output: Output): Promise<ExitCode> {
  const text = words.length === 0 ? undefined : await readMessage(words, processStdin());
  if (text !== undefined && Buffer.byteLength(text) > MAX_BYTES) {
    throw usageError(
      `The message has more than ${MAX_BYTES} bytes: nothing was sent.`,
      `Say it first (longhaul say ${id} -), then interrupt without a message.`,
    );
  }
  const services = await openServices();
  try {
    const message = text === undefined ? undefined : { id: randomUUID(), text };
    await withRunning(services, id, (handle) => handle.signal(interruptSignal, message));
    output.note(`${id}: the step in flight is broken off; the queue is kept.\n`);
    return exitCodes.completed;
  } finally {
    await services.close();
  }
}
