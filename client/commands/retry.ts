/** `longhaul retry ID --from-step N`: goes back to the moment before a step, and on from there. */
import { Command } from "commander";
import { readFigures } from "../../activities/store/reading.ts";
import { openServices } from "../connect/connection.ts";
import { exitCodes, type ExitCode } from "../console/errors.ts";
import type { Output } from "../console/output.ts";
import { requireSession } from "../sessions/require-session.ts";
import { retrySession } from "../sessions/retry-session.ts";
import { positiveInteger } from "../sessions/run-options.ts";
import { watchSession } from "../watch/watch-session.ts";

interface RetryFlags {
  readonly fromStep?: number;
  readonly dropMessages?: boolean;
  readonly detach?: boolean;
  readonly json?: boolean;
}

export function retryCommand(output: Output, done: (code: ExitCode) => void): Command {
  return new Command("retry")
    .description("go back to before a step, conversation and files, and continue from there")
    .argument("<id>", "session")
    .option("--from-step <n>", "first step to do again (default: the newest that began)", positiveInteger)
    .option("--drop-messages", "do not repeat the messages sent since then")
    .option("--detach", "do not watch it; print only the id")
    .option("--json", "one event a line on stdout; with --detach one JSON document")
    .action(async (id: string, flags: RetryFlags) => done(await retry(id, flags, output)));
}

async function retry(id: string, flags: RetryFlags, output: Output): Promise<ExitCode> {
  const services = await openServices();
  try {
    const row = await requireSession(services, id);
    const before = (await readFigures(services.store.db, [id])).get(id)?.lastSeq ?? 0;
    const retried = await retrySession(services, row, {
      fromStep: flags.fromStep,
      dropMessages: flags.dropMessages === true,
    });
    const { step, fromRun, runId, epoch } = retried;
    output.note(
      `${id} is back before step ${step}; what came after is kept, marked (run ${fromRun} → ${runId}).\n`,
    );
    if (flags.detach === true) {
      if (flags.json === true) output.json({ id, fromStep: step, runId, resetRunId: fromRun, epoch });
      else output.result(`${id}\n`);
      return exitCodes.completed;
    }
    return await watchSession({
      services,
      sessionId: id,
      afterSeq: before,
      json: flags.json === true,
      output,
      closing: async () => [`Its files: longhaul pull ${id} DIR   Go on with it: longhaul say ${id} "…"`],
    });
  } finally {
    await services.close();
  }
}
