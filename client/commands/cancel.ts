/** `longhaul cancel ID`: ends a session's run and waits until it has cleaned up. */
import type { Command } from "commander";
import { tellNoWorker } from "../connect/no-worker.ts";
import { cancelSession } from "../sessions/cancel-session.ts";
import { describeKept } from "../sessions/describe-kept.ts";
import { SESSION, withWorkingSession } from "../sessions/with-session.ts";
import type { Output } from "../console/output.ts";

export function cancelCommand(command: Command, output: Output) {
  command.argument("<id>", SESSION).option("--json", "one JSON document");
  return (reference: string, flags: { readonly json?: boolean }) =>
    withWorkingSession(reference, async (services, row) => {
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
