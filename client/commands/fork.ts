/** `longhaul fork ID --from-step N`: a session of its own that goes on from before that step. */
import { Command } from "commander";
import { openServices } from "../connect/connection.ts";
import { exitCodes, type ExitCode } from "../console/errors.ts";
import { forkSession } from "../sessions/fork-session.ts";
import type { Output } from "../console/output.ts";
import { requireSession } from "../sessions/require-session.ts";
import { positiveInteger } from "../sessions/run-options.ts";
import { parseSessionId } from "../sessions/session-id.ts";
import { processStdin, readMessage } from "../sessions/task-input.ts";
import { watchSession } from "../watch/watch-session.ts";

interface ForkFlags {
  readonly fromStep?: number;
  readonly message?: string;
  readonly id?: string;
  readonly detach?: boolean;
  readonly json?: boolean;
}

export function forkCommand(output: Output, done: (code: ExitCode) => void): Command {
  return new Command("fork")
    .description("a new session from an earlier point of this one, which is unchanged")
    .argument("<id>", "session")
    .option("--from-step <n>", "first step that is left out (default: none)", positiveInteger)
    .option("--message <text>", "what to say to the new session; - reads it from stdin")
    .option("--id <id>", "id of the new session")
    .option("--detach", "do not watch it; print only the new id")
    .option("--json", "one event a line on stdout; with --detach one JSON document")
    .action(async (id: string, flags: ForkFlags) => done(await fork(id, flags, output)));
}

async function fork(from: string, flags: ForkFlags, output: Output): Promise<ExitCode> {
  const chosen = flags.id === undefined ? undefined : parseSessionId(flags.id);
  const message =
    flags.message === undefined ? undefined : await readMessage([flags.message], processStdin());
  const services = await openServices();
  try {
    const row = await requireSession(services, from);
    const id = await forkSession(services, row, { fromStep: flags.fromStep, message, id: chosen });
    output.note(`${id} continues from ${from}, which is unchanged.\n`);
    if (flags.detach === true) {
      if (flags.json === true) output.json({ id, workflowId: id, forkedFrom: from });
      else output.result(`${id}\n`);
      return exitCodes.completed;
    }
    return await watchSession({
      services,
      sessionId: id,
      afterSeq: 0,
      json: flags.json === true,
      output,
      closing: async () => [`Its files: longhaul pull ${id} DIR   Go on with it: longhaul say ${id} "…"`],
    });
  } finally {
    await services.close();
  }
}
