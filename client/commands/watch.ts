/** `longhaul watch ID`: attaches to a session, from its beginning or from an event on. */
import type { Command } from "commander";
import type { Output } from "../console/output.ts";
import { warnWithoutWorker } from "../connect/readiness.ts";
import { sessionHasEnded } from "../sessions/start-session.ts";
import { wholeNumber } from "../sessions/flag-values.ts";
import { EXIT_ON_QUESTION } from "../sessions/run-flags.ts";
import { SESSION, withSession } from "../sessions/with-session.ts";
import { watchSession } from "../watch/watch-session.ts";

interface WatchFlags {
  readonly from?: number;
  readonly json?: boolean;
  readonly children?: boolean;
  readonly exitOnQuestion?: boolean;
}

export function watchCommand(command: Command, output: Output) {
  command
    .argument("<id>", SESSION)
    .option("--from <seq>", "only events after this one", wholeNumber)
    .option("--children", "its delegates too")
    .option("--json", "one event a line on stdout")
    .option("--exit-on-question", EXIT_ON_QUESTION);
  return (reference: string, { from = 0, ...flags }: WatchFlags) =>
    withSession(reference, async (services, row) => {
      const { json = false, children = false, exitOnQuestion = false } = flags;
      return watchSession({
        services,
        sessionId: row.id,
        afterSeq: from,
        json,
        children,
        exitOnQuestion,
        output,
        begin: sessionHasEnded(row) ? undefined : () => warnWithoutWorker(services, output),
      });
    });
}
