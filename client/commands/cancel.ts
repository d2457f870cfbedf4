/** `longhaul cancel ID` and `interrupt ID [MESSAGE]`: end a run, a batch or the step in flight, and say what was kept. */
import { shellWord } from "../console/format.ts";
import type { Command } from "commander";
import { figuresText } from "../batch/batch-document.ts";
import { cancelBatch, isBatch } from "../batch/start-batch.ts";
import { warnWithoutWorker } from "../connect/readiness.ts";
import type { Output } from "../console/output.ts";
import { cancelSession, describeKept, interruptMessage, interruptSession } from "../sessions/stop-session.ts";
import {
  requireSession,
  SESSION,
  withWorkingServices,
  withWorkingSession,
} from "../sessions/with-session.ts";
import { plural } from "../../activities/text/format.ts";
import { processStdin, readMessage } from "../sessions/task-input.ts";
import { untakenNote } from "../sessions/guidance.ts";

export function cancelCommand(command: Command, output: Output) {
  command.argument("<id>", `${SESSION}; or a batch's name`).option("--json", "one JSON document");
  return (reference: string, flags: { readonly json?: boolean }) =>
    withWorkingServices(async (services) => {
      if (await isBatch(services, reference)) {
        await warnWithoutWorker(services, output);
        const { items: _, ...batch } = await cancelBatch(services, reference);
        if (flags.json === true) output.json(batch);
        else output.note(`${reference} is ${batch.status}: ${figuresText(batch)}\n`);
        return;
      }
      const row = await requireSession(services, reference);
      const { id } = row;
      await warnWithoutWorker(services, output);
      const cancelled = await cancelSession(services, row, () =>
        output.note("Waiting for the clean-up (it needs a running worker) …\n"),
      );
      if (flags.json === true) output.json({ id, status: "cancelled", ...cancelled });
      else
        output.note(
          `${id} is cancelled. ${describeKept(cancelled)}\nResume it with: longhaul say ${shellWord(id)} "go on"\n`,
        );
    });
}

export function interruptCommand(command: Command, output: Output) {
  command
    .argument("<id>", SESSION)
    .argument("[message...]", "what to do instead; - reads it from stdin")
    .option("--json", "one JSON document");
  return async (reference: string, messageWords: readonly string[], flags: { readonly json?: boolean }) => {
    const text = messageWords.length === 0 ? undefined : await readMessage(messageWords, processStdin());
    const message = text === undefined ? undefined : interruptMessage(text, reference);
    await withWorkingSession(reference, async (services, row) => {
      const { id } = row;
      await warnWithoutWorker(services, output);
      const interrupted = await interruptSession(services, row, message);
      if (flags.json === true) output.json({ id, ...interrupted });
      else if (interrupted.acknowledged) {
        const { goesOn, hint } = nextOf(id, text !== undefined, interrupted.waiting);
        output.note(`${id} is interrupted and ${goesOn}. ${describeKept(interrupted)}\n${hint}`);
      } else output.note(`${await untakenNote(services, id, "the interrupt")}\n`);
    });
  };
}

/** @param waiting how many messages waited before */
function nextOf(id: string, isSaid: boolean, waiting: number) {
  const queue = plural(waiting, "waiting message");
  if (isSaid) return { goesOn: `continues with ${waiting > 0 ? `${queue} and ` : ""}your message`, hint: "" };
  if (waiting > 0) return { goesOn: `continues with ${queue}`, hint: "" };
  return {
    goesOn: "continues on its own: no message was waiting",
    hint: `Say what to do instead: longhaul say ${shellWord(id)} "…". To end it: longhaul cancel ${shellWord(id)}\n`,
  };
}
