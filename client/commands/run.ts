/** `longhaul run` and `start`: a new session, watched or not. */
import { join, resolve } from "node:path";
import type { Command } from "commander";
import { isSetupOff } from "../config/config.ts";
import type { Services } from "../connect/connection.ts";
import { ClientError, usageError, type ExitCode } from "../console/errors.ts";
import type { Output } from "../console/output.ts";
import { prepareStart, REHEARSAL_NOTE } from "../sessions/prepare-start.ts";
import { EXIT_ON_QUESTION, withRunFlags, type RunFlags } from "../sessions/run-flags.ts";
import type { FollowEnd } from "../watch/follow.ts";
import { present, shellWord } from "../console/format.ts";

/** `longhaul run TASK`: set-up if needed, starts the session, watches it, and pulls its files at the end. */
export function runCommand(command: Command, output: Output) {
  withRunFlags(command)
    .argument("[task...]", "what to do; - reads it from stdin")
    .option("--json", "one event a line on stdout")
    .option("--exit-on-question", EXIT_ON_QUESTION);
  return async (taskWords: readonly string[], flags: RunFlags & { readonly exitOnQuestion?: boolean }) => {
    requireAttempts(flags);
    if (flags.attempts !== undefined) return makeAttempts(taskWords, flags, output, { isWatched: true });
    const { start, config } = await prepareStart(taskWords, flags, output.note);
    if (config.rehearsal) output.note(`${output.style("yellow", REHEARSAL_NOTE)}\n`);
    // Wrong usage is reported before the drivers are loaded.
    const [{ withPreparedServices }, { startSession }, { watchSession }] = await Promise.all([
      import("../sessions/with-session.ts"),
      import("../sessions/start-session.ts"),
      import("../watch/watch-session.ts"),
    ]);
    const say = (line: string) => output.note(`${output.style("dim", line)}\n`);
    const isSetUpHere = flags.setup && !isSetupOff();
    return withPreparedServices({ ...flags, image: config.run.sandbox.image }, say, async (services) => {
      const { id, attached } = await startSession(services, { ...start, acceptEnded: true });
      announce(id, attached, services, output);
      return watchSession({
        services,
        sessionId: id,
        afterSeq: 0,
        json: flags.json === true,
        exitOnQuestion: flags.exitOnQuestion === true,
        output,
        closing: (end, goOn) =>
          closingLines(id, end, services, {
            rehearsal: config.rehearsal,
            isSetUpHere,
            goOn,
            follows: start.config.repository?.follow?.on === true,
          }),
      });
    });
  };
}

/** @throws ClientError (usage) */
function requireAttempts({ first, attempts, pull }: RunFlags): void {
  if (pull !== undefined && attempts !== undefined)
    throw usageError(
      "--pull and --attempts exclude each other: one session works on a pull request's branch.",
    );
  if (first === true && attempts === undefined)
    throw usageError("--first is about --attempts, and there are none.", "Add --attempts N.");
}

/** Several sessions on one task. Wrong usage is reported before the drivers are loaded. */
async function makeAttempts(
  taskWords: readonly string[],
  flags: RunFlags,
  output: Output,
  { isWatched }: { readonly isWatched: boolean },
): Promise<ExitCode> {
  const { prepareAttempts, runAttempts, startAttempts } = await import("../attempts/attempts.ts");
  const { order, config } = await prepareAttempts(taskWords, flags, output.note);
  if (config.rehearsal) output.note(`${REHEARSAL_NOTE}\n`);
  const { withPreparedServices } = await import("../sessions/with-session.ts");
  const say = (line: string) => output.note(`${output.style("dim", line)}\n`);
  const json = flags.json === true;
  return withPreparedServices({ ...flags, image: config.run.sandbox.image }, say, (services) =>
    isWatched ? runAttempts(services, order, { json }, output) : startAttempts(services, order, output),
  );
}

function announce(id: string, attached: boolean, services: Services, output: Output): void {
  const ui = services.uiUrl(id);
  const lines = [
    `${attached ? "attached to" : "session"} ${output.style("bold", id)}${ui === undefined ? "" : `  ${output.style("dim", ui)}`}`,
    output.style("dim", `guide it:  longhaul say ${shellWord(id)} "…"`),
    output.style("dim", `Ctrl-C detaches; the task goes on`),
  ];
  output.note(`${lines.join("\n")}\n`);
}

function asRefusal(error: unknown): ClientError {
  if (error instanceof ClientError) return error;
  throw error;
}

/** Where the files are, as the very last line; before it, how to continue. */
async function closingLines(
  id: string,
  end: FollowEnd,
  services: Services,
  hints: {
    readonly rehearsal: boolean;
    readonly isSetUpHere: boolean;
    readonly goOn: string | undefined;
    readonly follows: boolean;
  },
): Promise<string[]> {
  const { rehearsal, isSetUpHere, goOn, follows } = hints;
  const ui = services.uiUrl(id);
  const lines = present(
    rehearsal && "This was a rehearsal: set OPENAI_API_KEY to have a model do your own task.",
    goOn !== undefined && `Go on with it:           ${goOn}`,
    follows && end.status === "completed" && `Its pull request:        longhaul status ${shellWord(id)}`,
    isSetUpHere && `End services and worker: longhaul down`,
    ui !== undefined && `Web UI:                  ${ui}`,
  );
  const folder = resolve(join(".longhaul", "workspaces", id));
  const { pullNotes, pullWorkspace } = await import("../workspace/pull-workspace.ts");
  const pulled = await pullWorkspace(services.store, id, folder, { ours: true }).catch(asRefusal);
  // The exit code reports the task's outcome, so this is only a line.
  if (pulled instanceof ClientError)
    return [...lines, `! ${pulled.message}`, `Its files: longhaul pull ${shellWord(id)} DIR`];
  if (pulled === undefined) return [...lines, `No files were saved (${end.status}).`];
  lines.push(...pullNotes(pulled, folder, `longhaul pull ${shellWord(id)} ${shellWord(id)} --git`));
  return [...lines, `Files (${pulled.files}) are in ${folder}`];
}

/** `longhaul start TASK`: set-up if needed, then the start; prints the id. */
export function startCommand(command: Command, output: Output) {
  withRunFlags(command)
    .argument("[task...]", "what to do; - reads it from stdin")
    .option("--json", "print one JSON document instead of the id");
  return async (taskWords: readonly string[], flags: RunFlags) => {
    requireAttempts(flags);
    if (flags.attempts !== undefined) {
      await makeAttempts(taskWords, flags, output, { isWatched: false });
      return;
    }
    const { start, config } = await prepareStart(taskWords, flags, output.note);
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
      output.note(`Watch it: longhaul watch ${shellWord(id)}\n`);
    });
  };
}
