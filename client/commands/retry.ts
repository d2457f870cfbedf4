/** `longhaul retry ID`: goes back to before a step, in the session itself, and continues from there. */
import type { Command } from "commander";
import { readFigures } from "../../activities/store/reading.ts";
import { exitCodes } from "../console/errors.ts";
import type { Output } from "../console/output.ts";
import { retrySession } from "../sessions/retry-session.ts";
import { positiveInteger } from "../sessions/flag-values.ts";
import { SESSION, withWorkingSession } from "../sessions/with-session.ts";
import { watchSession } from "../watch/watch-session.ts";

interface RetryFlags {
  readonly fromStep?: number;
  readonly dropMessages?: boolean;
  readonly detach?: boolean;
  readonly json?: boolean;
}

export function retryCommand(command: Command, output: Output) {
  command
    .argument("<id>", SESSION)
    .option("--from-step <n>", "first step to do again (default: the newest that began)", positiveInteger)
    .option("--drop-messages", "do not repeat the messages sent since then")
    .option("--detach", "do not watch it; print only the id")
    .option("--json", "one event a line on stdout; with --detach one JSON document");
  return (reference: string, { fromStep, dropMessages = false, detach = false, json = false }: RetryFlags) =>
    withWorkingSession(reference, async (services, row) => {
      const { id } = row;
      const afterSeq = (await readFigures(services.store.db, [id])).get(id)?.lastSeq ?? 0;
      const { step, fromRun, runId, epoch } = await retrySession(services, row, { fromStep, dropMessages });
      output.note(
        `${id} went back to before step ${step}. Later steps are kept, marked as superseded (run ${fromRun} → ${runId}).\n`,
      );
      if (!detach) return watchSession({ services, sessionId: id, afterSeq, json, output });
      if (json) output.json({ id, fromStep: step, runId, resetRunId: fromRun, epoch });
      else output.result(`${id}\n`);
      return exitCodes.completed;
    });
}
