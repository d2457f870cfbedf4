/** `longhaul cancel ID`: ends a session's run and waits until it has cleaned up. */
import { Command } from "commander";
import { cancelSession } from "../sessions/cancel-session.ts";
import { openServices } from "../connect/connection.ts";
import { exitCodes, type ExitCode } from "../console/errors.ts";
import { keptText } from "../sessions/kept-text.ts";
import type { Output } from "../console/output.ts";
import { requireSession } from "../sessions/require-session.ts";

export function cancelCommand(output: Output, done: (code: ExitCode) => void): Command {
  return new Command("cancel")
    .description("end a session's run; waits for its clean-up and says what was kept")
    .argument("<id>", "session")
    .option("--json", "one JSON document")
    .action(async (id: string, flags: { json?: boolean }) => done(await cancel(id, flags, output)));
}

async function cancel(id: string, flags: { json?: boolean }, output: Output): Promise<ExitCode> {
  const services = await openServices();
  try {
    const row = await requireSession(services, id);
    const cancelled = await cancelSession(services, row, () =>
      output.note("Waiting for the clean-up (it needs a running worker) …\n"),
    );
    if (flags.json === true) output.json({ id, status: "cancelled", ...cancelled });
    else output.note(`${id} is cancelled. ${keptText(cancelled)}\nResume it with: longhaul say ${id} "…"\n`);
    return exitCodes.completed;
  } finally {
    await services.close();
  }
}
