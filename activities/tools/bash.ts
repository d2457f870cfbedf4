import { z } from "zod";
import type { SandboxCommand, CommandState, Sandbox, PtySize } from "../sandbox/sandbox.ts";
import { lastWholeLine } from "../contract/calls.ts";
import { cutTail } from "../text/cut.ts";
import { bashResult, networkNote } from "./bash-result.ts";
import { commandOutput } from "../sandbox/command-output.ts";
import { failure, LeaveRunning, typedTool, type ToolContext, type ToolResult } from "./tool.ts";
import { oneLine, workspacePath } from "./paths.ts";
import { type ToolLimits } from "../contract/tools.ts";
import { terminalResult } from "./terminal/terminal-result.ts";
import { QUIET_MS, terminalSides, USUAL_WAIT_MS } from "./write-stdin.ts";

const input = z.strictObject({
  command: z.string().min(1),
  timeout_seconds: z.number().positive().optional().describe("Default 60, at most 600."),
  background: z
    .boolean()
    .optional()
    .describe(
      "For servers and long work: returns at once with an id for bash_output and kill_process; no time limit.",
    ),
  terminal: z.boolean().optional().describe("For programs that ask or draw; type with write_stdin."),
  ...terminalSides,
  cwd: z.string().optional(),
});

/** Time between TERM and KILL: the requirements' 0.5 s from a cancel to the process's end leaves this much. */
const GRACE_MS = 200;
/** The sandbox ends a command at its timeout; if it has not done so this much later, we do. */
const SANDBOX_MARGIN_MS = 5_000;

export const bash = typedTool({
  name: "bash",
  description:
    "Runs a command with bash in /workspace, each in a new shell: variables and `cd` do not last. Returns output and errors " +
    "together, and the exit code if it is not 0. No standard input: answer prompts by options. Output over " +
    "30,000 characters is cut in the middle; read_output has all of it. Prefer the other tools to read, search or edit files.",
  input,
  readOnly: false,
  about: ({ command }) => command.trim().split("\n")[0] ?? "",
  run: runBash,
});

function timeoutOf(request: z.infer<typeof input>, limits: ToolLimits): number {
  const requestedMs =
    request.timeout_seconds === undefined ? limits.timeoutMs : request.timeout_seconds * 1_000;
  return Math.min(requestedMs, limits.maxTimeoutMs);
}

async function runBash(request: z.infer<typeof input>, context: ToolContext): Promise<ToolResult> {
  const cwd = workspacePath(request.cwd);
  const { terminal: isTerminal = false, background = isTerminal, rows, cols } = request;
  if (!isTerminal && (rows ?? cols) !== undefined)
    return failure("rows and cols are a terminal's: they need terminal: true. The command was not started.");
  const terminal = isTerminal ? { rows: rows ?? USUAL_SIZE.rows, cols: cols ?? USUAL_SIZE.cols } : undefined;
  const id = context.callKey;
  const sandbox = await context.sandbox();
  const timeoutMs = timeoutOf(request, context.limits);
  const before = context.resumed ? await sandbox.state(id) : undefined;
  // The sandbox for which the call was claimed has no record of the command, so it was never started. If an earlier
  // attempt that was thought dead still starts it, the sandbox finds the command under this id and starts no second
  // one.
  const neverBegun = before === undefined && context.claimedIn === sandbox.identity.container;
  if (context.resumed && !neverBegun && (before === undefined || before.kind === "lost")) {
    return unknownEnd(request, sandbox, before);
  }
  if (context.signal.aborted) return interruptedBefore(context.signal);
  const command: SandboxCommand = {
    id,
    argv: ["bash", "-c", request.command],
    cwd: cwd.absolute,
    mergeOutput: true,
    ...(background || terminal ? { background: true, terminal } : { timeoutMs, tellApart: true }),
  };
  if (terminal) return startedInTerminal(before ?? (await sandbox.start(command)), sandbox, context);
  if (background) return startedInBackground(before ?? (await sandbox.start(command)));
  const state = await endOf({ sandbox, command, before, timeoutMs }, context);
  if (state === undefined) return interruptedBefore(context.signal);
  if (state.kind === "lost") return unknownEnd(request, sandbox, state);
  const output = await commandOutput(sandbox, state, context.limits.maxChars);
  return bashResult(state, output, {
    network: await networkNote(sandbox, state, output.text),
    timeoutMs,
    interrupted: context.signal.aborted,
    limits: context.limits,
  });
}

/** Bytes searched for the last line. Source: a line of a test runner or a build has at most some hundred. */
const LAST_LINE_BYTES = 2_048;

/** Reports the last line of a command's output so far. A failure to report it is ignored. */
async function reportProgress(
  sandbox: Sandbox,
  id: string,
  bytes: number,
  { onProgress }: ToolContext,
): Promise<void> {
  const from = Math.max(0, bytes - LAST_LINE_BYTES);
  const tail = await sandbox.read(id, "out", from, LAST_LINE_BYTES).catch(() => new Uint8Array());
  onProgress(bytes, lastWholeLine(new TextDecoder().decode(tail), from === 0));
}

interface Execution {
  readonly sandbox: Sandbox;
  readonly command: SandboxCommand;
  /** The state in which an earlier attempt left the command. */
  readonly before: CommandState | undefined;
  readonly timeoutMs: number;
}

/** @returns undefined if the abort came before the command started */
async function endOf(
  { sandbox, command, before, timeoutMs }: Execution,
  context: ToolContext,
): Promise<CommandState | undefined> {
  const { signal } = context;
  const waiting = {
    timeoutMs: timeoutMs + SANDBOX_MARGIN_MS,
    signal,
    onOutput: (bytes: number) => void reportProgress(sandbox, command.id, bytes, context),
  };
  try {
    const state = await (before === undefined
      ? sandbox.run(command, waiting)
      : sandbox.wait(command.id, waiting));
    if (state.kind !== "running") return state;
  } catch (error) {
    if (!signal.aborted) throw error;
  }
  if (signal.aborted && signal.reason instanceof LeaveRunning) throw signal.reason;
  if ((await sandbox.state(command.id)) === undefined) return undefined;
  return sandbox.kill(command.id, GRACE_MS);
}

function interruptedBefore(signal: AbortSignal): ToolResult {
  if (signal.reason instanceof LeaveRunning) throw signal.reason;
  return { text: "[interrupted before it began]", interrupted: true };
}

/** Source: every terminal's size, unless somebody chose another. */
const USUAL_SIZE: PtySize = { rows: 24, cols: 80 };

async function startedInTerminal(
  state: CommandState,
  sandbox: Sandbox,
  context: ToolContext,
): Promise<ToolResult> {
  const { id, terminal } = state;
  if (state.kind === "refused") return failure(`The command was not started: ${state.reason}`);
  const intro = `Started in a terminal, id "${id}". Type with write_stdin id="${id}"; end it with kill_process id="${id}".`;
  const waiting = { quietMs: QUIET_MS, timeoutMs: USUAL_WAIT_MS };
  const { signal } = context;
  const terminalLook = await sandbox.look(id, { ...waiting, signal }).catch((error: unknown) => {
    if (!signal.aborted || signal.reason instanceof LeaveRunning) throw error;
    return undefined;
  });
  if (terminalLook === undefined) {
    await sandbox.kill(id, GRACE_MS);
    return { text: "[interrupted: the terminal was ended]", interrupted: true };
  }
  const screenResult = await terminalResult(
    terminalLook,
    terminalLook.state.terminal ?? terminal ?? USUAL_SIZE,
    { show: "screen", intro },
    context,
  );
  return { ...screenResult, background: terminalLook.state.kind === "running" ? "running" : "told" };
}

function startedInBackground(state: CommandState): ToolResult {
  if (state.kind === "refused") return failure(`The command was not started: ${state.reason}`);
  return {
    background: "running",
    text: `Started in the background, id "${state.id}". Poll it with bash_output id="${state.id}"; end it with kill_process id="${state.id}".`,
  };
}

async function unknownEnd(
  request: z.infer<typeof input>,
  sandbox: Sandbox,
  state: CommandState | undefined,
): Promise<ToolResult> {
  const printed = state === undefined || state.outKept === 0 ? "" : await lastWords(sandbox, state);
  return {
    unknown: true,
    text: [
      state === undefined
        ? "It is not known how this command ended, or whether it began: the worker stopped, and this sandbox has no record of it (it may have been restored from the last save)."
        : "It is not known how this command ended: its sandbox was restarted while it ran.",
      `It was started with: ${oneLine(request.command, 500)}`,
      printed === "" ? "Nothing it printed is left." : `It last printed:\n${printed}`,
      "It was not run again. Look at what it has done (files, processes, git status) before you repeat it.",
    ].join("\n"),
  };
}

async function lastWords(sandbox: Sandbox, state: CommandState): Promise<string> {
  const output = await commandOutput(sandbox, state, 2_000);
  return cutTail(output.text, 2_000);
}
