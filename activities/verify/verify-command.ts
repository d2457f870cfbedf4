/** Runs one command of `verify` under the sandbox's supervisor, stores all that it prints, and says what became of it. */
import { createHash } from "node:crypto";
import { commandOutput } from "../sandbox/command-output.ts";
import { type CommandState, type Sandbox, SandboxLost } from "../sandbox/sandbox.ts";
import { appendEvents } from "../store/events.ts";
import { storeFullOutput } from "../runtime/full-output.ts";
import { callKey } from "../store/tool-calls.ts";
import { shorten } from "../text/cut.ts";
import { watchEgress } from "../workspace/egress.ts";
import { failureExcerpt, failureSignature } from "./failure-excerpt.ts";
import { type SeenCommand } from "./seen-command.ts";
import type { Verification } from "./files.ts";

/** The sandbox ends a command at its time; we look again this much later. */
const MARGIN_MS = 5_000;
const MAX_COMMAND_CHARS = 200;
/** Of the output that is searched for the cause: its beginning and its end. */
const MAX_OUTPUT_CHARS = 200_000;
/** Shells say by these codes that there is no such program, or that it cannot be run. Source: POSIX. */
const NOT_RUN: readonly number[] = [126, 127];

/** @throws SandboxLost */
export async function verifyCommand(
  { deps, scope, session, settings, input }: Verification,
  sandbox: Sandbox,
  { index, tree }: { readonly index: number; readonly tree: string },
): Promise<SeenCommand> {
  const command = settings.commands[index] ?? "";
  const text = shorten(deps.sanitizer.clean(command), MAX_COMMAND_CHARS);
  const { step, round } = input;
  // In a sandbox that was started again it is another command: the one of before was lost.
  const { boot } = sandbox.identity;
  const id = `verify-${boot}-${session.epoch}-${step}-${round}-${index}-${tree.slice(0, 12)}`;
  const egress = watchEgress(deps, session, step);
  try {
    await egress.begin(sandbox);
    await appendEvents(deps.store.db, session.id, session.epoch, [
      { type: "verify:started", step, data: { command: text, round } },
    ]);
    const state = await sandbox.run(
      { id, argv: ["bash", "-c", command], mergeOutput: true, timeoutMs: settings.timeout },
      { signal: scope.signal, timeoutMs: settings.timeout + MARGIN_MS },
    );
    scope.signal.throwIfAborted();
    if (state.kind === "lost")
      throw new SandboxLost("The sandbox was restarted while the work was verified.");
    const output = await commandOutput(sandbox, state, MAX_OUTPUT_CHARS);
    const refused = await egress.end();
    const handle = output.text === "" ? undefined : outputName({ session, input }, index, id);
    if (handle !== undefined)
      await storeFullOutput(
        deps,
        { sessionId: session.id, handle },
        output.whole?.pieces() ?? once(output.text),
      );
    return {
      ...seen(text, state, deps.sanitizer.clean(output.text), { refused, ...settings, ...input }),
      handle,
    };
  } finally {
    egress.stop();
  }
}

/** Like a call's, and different for each time that the command runs: in a round it may run on two states of the files. */
function outputName(
  { session, input }: Pick<Verification, "session" | "input">,
  index: number,
  commandId: string,
): string {
  const mark = createHash("sha256").update(commandId).digest("hex").slice(0, MARK_CHARS);
  const { step, round } = input;
  return `${callKey({ epoch: session.epoch, step, index })}v${round}-${mark}`;
}

const MARK_CHARS = 6;

async function* once(text: string): AsyncGenerator<string> {
  yield text;
}

function seen(
  text: string,
  state: CommandState,
  output: string,
  { refused, timeout, round }: { refused: string | undefined; timeout: number; round: number },
): SeenCommand {
  const how = [howItEnded(state, timeout), ...(refused === undefined ? [] : [refused])].join("; ");
  const exitCode = state.kind === "exited" ? state.exitCode : undefined;
  const ms = "durationMs" in state ? Math.round(state.durationMs) : 0;
  const outcome = outcomeOf(state, round);
  if (outcome === "passed") return { text, how, outcome, exitCode, ms, excerpt: "", signature: undefined };
  const { text: excerpt, firstError } = failureExcerpt(output);
  const signature = failureSignature(text, how, firstError);
  return { text, how, outcome, exitCode, ms, excerpt, isPart: excerpt !== output.trimEnd(), signature };
}

/** "Could not be run" is neither passed nor failed: it says nothing of the work. */
function outcomeOf(state: CommandState, round: number): "passed" | "failed" | "unavailable" {
  if (state.kind === "refused") return "unavailable";
  if (state.kind === "killed")
    return state.by === "timeout" && state.outBytes === 0 && round === 0 ? "unavailable" : "failed";
  if (state.kind !== "exited") return "unavailable";
  if (NOT_RUN.includes(state.exitCode)) return "unavailable";
  return state.exitCode === 0 ? "passed" : "failed";
}

function howItEnded(state: CommandState, timeoutMs: number): string {
  if (state.kind === "exited") {
    if (state.exitCode === 127) return "exit code 127: there is no such command";
    if (state.exitCode === 126) return "exit code 126: it cannot be executed";
    if (state.exitCode === 137) return "exit code 137: killed, most often at the sandbox's memory limit";
    return `exit code ${state.exitCode}`;
  }
  if (state.kind === "refused") return `not started: ${state.reason}`;
  if (state.kind !== "killed") return "not ended";
  if (state.by === "timeout") return `time over: ended after ${timeoutMs / 1_000} s (verify.timeout)`;
  if (state.by === "disk") return "ended because the sandbox's disk is full (sandbox.disk)";
  return state.signal === "SIGKILL"
    ? "ended by SIGKILL, most often at the sandbox's memory limit (sandbox.memory)"
    : `ended by ${state.signal}`;
}
