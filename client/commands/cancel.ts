/** `longhaul cancel ID`: ends a run, or a batch, and says what was kept. */
import type { Command } from "commander";
import { figuresText } from "../batch/batch-document.ts";
import { cancelBatch, isBatch } from "../batch/start-batch.ts";
import { warnWithoutWorker } from "../connect/readiness.ts";
import type { Output } from "../console/output.ts";
import { cancelSession, describeKept } from "../sessions/stop-session.ts";
import { requireSession, SESSION, withWorkingServices } from "../sessions/with-session.ts";

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
          `${id} is cancelled. ${describeKept(cancelled)}\nResume it with: longhaul say ${id} "go on"\n`,
        );
    });
}
