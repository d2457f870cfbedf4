/** `longhaul start TASK`: starts and leaves; the id alone goes to stdout. */
import { Command } from "commander";
import { exitCodes, type ExitCode } from "../console/errors.ts";
import type { Output } from "../console/output.ts";
import { prepareStart, REHEARSAL_NOTE, withRunFlags, type RunFlags } from "../sessions/run-options.ts";

export function startCommand(output: Output, done: (code: ExitCode) => void): Command {
  return withRunFlags(new Command("start"))
    .description("start a task and print its session id alone on stdout")
    .argument("[task...]", "what to do; - reads it from stdin")
    .option("--json", "print one JSON document instead of the id")
    .action(async (words: string[], flags: RunFlags) => done(await start(words, flags, output)));
}

async function start(words: readonly string[], flags: RunFlags, output: Output): Promise<ExitCode> {
  const { start: order, config } = await prepareStart(words, flags, output.note);
  if (config.rehearsal) output.note(`${REHEARSAL_NOTE}\n`);
  // What is wrong with an order is said before the drivers are loaded.
  const [{ openPrepared }, { startSession }] = await Promise.all([
    import("../sessions/set-up.ts"),
    import("../sessions/start-session.ts"),
  ]);
  const services = await openPrepared(flags, (line) => output.note(`${line}\n`));
  try {
    const { id, attached } = await startSession(services, order);
    const ui = services.uiUrl(id);
    if (flags.json === true)
      output.json({ id, workflowId: id, attached, model: order.config.model, ui: ui ?? null });
    else output.result(`${id}\n`);
    if (ui !== undefined) output.note(`Web UI: ${ui}\n`);
    output.note(`Watch it: longhaul watch ${id}\n`);
    return exitCodes.completed;
  } finally {
    await services.close();
  }
}
