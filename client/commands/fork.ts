/** `longhaul fork ID` and `retry ID`: go on from before a step, as a new session or in the session itself. */
import type { Command } from "commander";
import { exitCodes } from "../console/errors.ts";
import type { Output } from "../console/output.ts";
import { forkSession } from "../sessions/fork-session.ts";
import { positiveInteger } from "../sessions/flag-values.ts";
import { parseSessionId } from "../sessions/session-id.ts";
import { processStdin, readMessage } from "../sessions/task-input.ts";
import { SESSION, withWorkingSession } from "../sessions/with-session.ts";
import { watchSession } from "../watch/watch-session.ts";
import { readFigures } from "../../activities/store/reading.ts";
import { retrySession } from "../sessions/retry-session.ts";

interface ForkFlags {
  readonly fromStep?: number;
  readonly message?: string;
  readonly id?: string;
  readonly detach?: boolean;
  readonly json?: boolean;
}

export function forkCommand(command: Command, output: Output) {
  command
    .argument("<id>", SESSION)
    .option("--from-step <n>", "first step that is left out (default: none)", positiveInteger)
    .option("--message <text>", "what to say to the new session; - reads it from stdin")
    .option("--id <id>", "id of the new session")
    .option("--detach", "do not watch it; print only the new id")
    .option("--json", "one event a line on stdout; with --detach one JSON document");
  return async (reference: string, { fromStep, json = false, ...flags }: ForkFlags) => {
    const chosen = flags.id === undefined ? undefined : parseSessionId(flags.id);
    const message =
      flags.message === undefined ? undefined : await readMessage([flags.message], processStdin());
    return withWorkingSession(reference, async (services, row) => {
      const from = row.id;
      const id = await forkSession(services, row, { fromStep, message, id: chosen });
      output.note(`${id} continues from ${from}, which is unchanged.\n`);
      if (flags.detach !== true) return watchSession({ services, sessionId: id, afterSeq: 0, json, output });
      if (json) output.json({ id, workflowId: id, forkedFrom: from });
      else output.result(`${id}\n`);
      return exitCodes.completed;
    });
  };
}

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
