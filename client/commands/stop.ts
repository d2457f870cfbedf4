/** `longhaul cancel ID` and `interrupt ID [MESSAGE]`: end a run, or only its step in flight, and say what was kept. */
import type { Command } from "commander";
import type { Kept } from "../../activities/store/stopped-step.ts";
import { figuresText } from "../batch/batch-document.ts";
import { cancelBatch, isBatch } from "../batch/cancel-batch.ts";
import { tellNoWorker } from "../connect/no-worker.ts";
import { oneLine } from "../console/format.ts";
import type { Output } from "../console/output.ts";
import { cancelSession } from "../sessions/cancel-session.ts";
import { interruptMessage, interruptSession } from "../sessions/interrupt-session.ts";
import { processStdin, readMessage } from "../sessions/task-input.ts";
import {
  requireSession,
  SESSION,
  withWorkingServices,
  withWorkingSession,
} from "../sessions/with-session.ts";

export function cancelCommand(command: Command, output: Output) {
  command.argument("<id>", `${SESSION}; or a batch's name`).option("--json", "one JSON document");
  return (reference: string, flags: { readonly json?: boolean }) =>
    withWorkingServices(async (services) => {
      if (await isBatch(services, reference)) {
        await tellNoWorker(services, output);
        const { items: _, ...batch } = await cancelBatch(services, reference);
        if (flags.json === true) output.json(batch);
        else output.note(`${reference} is ${batch.status}: ${figuresText(batch)}\n`);
        return;
      }
      const row = await requireSession(services, reference);
      const { id } = row;
      await tellNoWorker(services, output);
      const cancelled = await cancelSession(services, row, () =>
        output.note("Waiting for the clean-up (it needs a running worker) …\n"),
      );
      if (flags.json === true) output.json({ id, status: "cancelled", ...cancelled });
      else
        output.note(
          `${id} is cancelled. ${describeKept(cancelled)}\nResume it with: longhaul say ${id} "go on"\n`,
        );
    });
}

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
      await tellNoWorker(services, output);
      const interrupted = await interruptSession(services, row, message);
      if (flags.json === true) output.json({ id, ...interrupted });
      else if (interrupted.acknowledged)
        output.note(`${id} is interrupted and continues with its queue. ${describeKept(interrupted)}\n`);
      else
        output.note(
          "No worker has taken the interrupt yet; Temporal keeps it until one does (longhaul worker).\n",
        );
    });
  };
}

const EXCERPT_CHARS = 120;

export function describeKept({ kept, step, text, tools }: Kept): string {
  switch (kept) {
    case "partial text":
      return `Kept: what the model had said in step ${step} ("${oneLine(text ?? "", EXCERPT_CHARS)}").`;
    case "tools in progress":
      return `Kept: the output so far of ${tools.map(({ name }) => name).join(", ")} (step ${step}).`;
    case "nothing":
      return "Nothing was in progress.";
  }
}
