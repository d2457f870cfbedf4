/** `longhaul start TASK`: set-up if needed, then the start; prints the id. */
import type { Command } from "commander";
import type { Output } from "../console/output.ts";
import { prepareStart, REHEARSAL_NOTE, withRunFlags, type RunFlags } from "../sessions/run-options.ts";

export function startCommand(command: Command, output: Output) {
  withRunFlags(command)
    .argument("[task...]", "what to do; - reads it from stdin")
    .option("--json", "print one JSON document instead of the id");
  return async (words: readonly string[], flags: RunFlags) => {
    const { start, config } = await prepareStart(words, flags, output.note);
    if (config.rehearsal) output.note(`${REHEARSAL_NOTE}\n`);
    // Wrong usage is reported before the drivers are loaded.
    const [{ withPreparedServices }, { startSession }] = await Promise.all([
      import("../sessions/with-session.ts"),
      import("../sessions/start-session.ts"),
    ]);
    const say = (line: string) => output.note(`${line}\n`);
    await withPreparedServices({ ...flags, image: config.run.sandbox.image }, say, async (services) => {
      const { id, attached } = await startSession(services, start);
      const ui = services.uiUrl(id);
      if (flags.json === true)
        output.json({ id, workflowId: id, attached, model: start.config.model, ui: ui ?? null });
      else output.result(`${id}\n`);
      if (ui !== undefined) output.note(`Web UI: ${ui}\n`);
      output.note(`Watch it: longhaul watch ${id}\n`);
    });
  };
}
