/** `longhaul compact ID [FOCUS]`: a compaction round at the next step boundary. */
import { Command } from "commander";
import { compactSignal } from "../../workflows/messages.ts";
import { clientSanitizer } from "../config/config.ts";
import { openServices } from "../connect/connection.ts";
import { exitCodes, usageError, type ExitCode } from "../console/errors.ts";
import type { Output } from "../console/output.ts";
import { withRunning } from "../sessions/running-session.ts";

const MAX_FOCUS_CHARS = 2_000;

export function compactCommand(output: Output, done: (code: ExitCode) => void): Command {
  return new Command("compact")
    .description("replace old messages by a summary at the next step boundary")
    .argument("<id>", "session")
    .argument("[focus...]", "what the summary must keep in view")
    .action(async (id: string, words: string[]) => done(await compact(id, words.join(" ").trim(), output)));
}

async function compact(id: string, focus: string, output: Output): Promise<ExitCode> {
  if (focus.length > MAX_FOCUS_CHARS)
    throw usageError(`The focus has at most ${MAX_FOCUS_CHARS} characters.`);
  const services = await openServices();
  try {
    const request = focus === "" ? undefined : { focus: clientSanitizer().clean(focus) };
    await withRunning(services, id, (handle) => handle.signal(compactSignal, request));
    output.note(
      `${id} compacts its context at the next step boundary; longhaul watch ${id} shows the result.\n`,
    );
    return exitCodes.completed;
  } finally {
    await services.close();
  }
}
