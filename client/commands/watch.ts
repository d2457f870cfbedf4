/** `longhaul watch ID`: attaches to a session, from its beginning or from an event on. */
import { Command } from "commander";
import { openServices } from "../connect/connection.ts";
import type { ExitCode } from "../console/errors.ts";
import type { Output } from "../console/output.ts";
import { requireSession } from "../sessions/require-session.ts";
import { wholeNumber } from "../sessions/run-options.ts";
import { watchSession } from "../watch/watch-session.ts";

interface WatchFlags {
  readonly from?: number;
  readonly json?: boolean;
}

export function watchCommand(output: Output, done: (code: ExitCode) => void): Command {
  return new Command("watch")
    .description("attach to a session and show it live; Ctrl-C detaches, the task goes on")
    .argument("<id>", "session")
    .option("--from <seq>", "only events after this one", wholeNumber)
    .option("--json", "one event a line on stdout")
    .action(async (id: string, flags: WatchFlags) => done(await watch(id, flags, output)));
}

async function watch(id: string, flags: WatchFlags, output: Output): Promise<ExitCode> {
  const services = await openServices();
  try {
    await requireSession(services, id);
    return await watchSession({
      services,
      sessionId: id,
      afterSeq: flags.from ?? 0,
      json: flags.json === true,
      output,
      closing: async () => [`Its files: longhaul pull ${id} DIR   Go on with it: longhaul say ${id} "…"`],
    });
  } finally {
    await services.close();
  }
}
