/** `longhaul fork ID`: a new session that continues from before a step of another. */
import type { Command } from "commander";
import { exitCodes } from "../console/errors.ts";
import type { Output } from "../console/output.ts";
import { forkSession } from "../sessions/fork-session.ts";
import { positiveInteger } from "../sessions/flag-values.ts";
import { parseSessionId } from "../sessions/session-id.ts";
import { processStdin, readMessage } from "../sessions/task-input.ts";
import { SESSION, withWorkingSession } from "../sessions/with-session.ts";
import { watchSession } from "../watch/watch-session.ts";

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
