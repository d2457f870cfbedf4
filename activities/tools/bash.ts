import { z } from "zod";
import type { CommandState, Sandbox } from "../sandbox/sandbox.ts";
import { type CommandOutput, outputOf } from "./command-output.ts";
import { failure, LeaveRunning } from "./failure.ts";
import { oneLine, workspacePath } from "./paths.ts";
import { defineTool, type ToolContext, type ToolLimits, type ToolResult } from "./tool.ts";

const input = z.strictObject({
  command: z.string().min(1).describe("The command, run by `bash -c`. May have several lines."),
  timeout_seconds: z
    .number()
    .positive()
    .optional()
    .describe("Ends the command after this many seconds. Default 60, at most 600."),
  background: z
    .boolean()
    .optional()
    .describe(
      "Start it and return at once with an id for bash_output and kill_process. It has no time limit.",
    ),
  cwd: z.string().optional().describe("Folder to run in, relative to /workspace. Default /workspace."),
});
export type BashInput = z.infer<typeof input>;

/** TERM, then KILL: DESIGN's 0.5 s from a cancel to the process's end leaves this much. */
const GRACE_MS = 200;
/** The box ends a command at its time; this much later we do it ourselves. */
const BOX_MARGIN_MS = 5_000;
/** From here on the duration is worth a line. */
const LONG_MS = 10_000;

export const bash = defineTool<BashInput>({
  name: "bash",
  description:
    "Runs a command in the sandbox with bash, in /workspace. Each call is a new shell: variables and `cd` do not last. " +
    "Returns standard output and standard error together, and the exit code when it is not 0. Ends after 60 s by default " +
    "(timeout_seconds, at most 600); use background: true for servers and longer work. There is no terminal and no " +
    "standard input: pass --yes and the like. Output over 30,000 characters is cut in the middle and stays readable " +
    "with read_output. To read, search or edit files prefer the tools made for it.",
  input,
  readOnly: false,
  about: ({ command }) => oneLine(command.trim().split("\n")[0] ?? "", 60),
  timeoutMs: (given, limits) => (given.background === true ? limits.timeoutMs : timeoutOf(given, limits)),
  run: runBash,
});

function timeoutOf(given: BashInput, limits: ToolLimits): number {
  const asked = given.timeout_seconds === undefined ? limits.timeoutMs : given.timeout_seconds * 1_000;
  return Math.min(asked, limits.maxTimeoutMs);
}

async function runBash(given: BashInput, context: ToolContext): Promise<ToolResult> {
  const cwd = workspacePath(given.cwd);
  if (!cwd.ok) return failure(cwd.message);
  const id = context.callKey;
  const sandbox = await context.sandbox();
  const timeoutMs = timeoutOf(given, context.limits);
  const before = context.resumed ? await sandbox.state(id) : undefined;
  if (context.resumed && (before === undefined || before.kind === "lost")) {
    return unknownEnd(given, sandbox, before);
  }
  const started =
    before ??
    (await sandbox.start({
      id,
      argv: ["bash", "-c", given.command],
      cwd: cwd.absolute,
      mergeOutput: true,
      ...(given.background === true ? {} : { timeoutMs }),
    }));
  if (given.background === true) return startedInBackground(started);
  const ended = await waitForEnd(sandbox, started, timeoutMs, context);
  const output = await outputOf(sandbox, ended.state, context.limits.maxChars);
  return resultOf(ended.state, output, { timeoutMs, interrupted: ended.interrupted, limits: context.limits });
}

async function waitForEnd(
  sandbox: Sandbox,
  started: CommandState,
  timeoutMs: number,
  context: ToolContext,
): Promise<{ state: CommandState; interrupted: boolean }> {
  let state = started;
  const deadlineMs = timeoutMs + BOX_MARGIN_MS;
  if (state.kind === "running" && !context.signal.aborted) {
    try {
      state = await sandbox.wait(started.id, {
        timeoutMs: deadlineMs,
        signal: context.signal,
        onOutput: (bytes) => context.onProgress(`${bytes.toLocaleString("en-US")} bytes of output`),
      });
    } catch (error) {
      if (!context.signal.aborted) throw error;
    }
  }
  if (state.kind !== "running") return { state, interrupted: false };
  if (context.signal.aborted && context.signal.reason instanceof LeaveRunning) throw context.signal.reason;
  return { state: await sandbox.kill(started.id, GRACE_MS), interrupted: context.signal.aborted };
}

function startedInBackground(state: CommandState): ToolResult {
  if (state.kind === "refused") return failure(`The command was not started: ${state.reason}`);
  return {
    text: `Started in the background, id "${state.id}". Poll it with bash_output id="${state.id}"; end it with kill_process id="${state.id}".`,
  };
}

interface EndFacts {
  readonly timeoutMs: number;
  readonly interrupted: boolean;
  readonly limits: ToolLimits;
}

function resultOf(state: CommandState, output: CommandOutput, facts: EndFacts): ToolResult {
  const whole = output.whole === undefined ? {} : { whole: output.whole };
  const text = (...notes: readonly string[]): string => {
    const body = output.text.endsWith("\n") ? output.text.slice(0, -1) : output.text;
    return [body, ...notes].filter((part) => part !== "").join("\n");
  };
  switch (state.kind) {
    case "exited": {
      const notes = state.exitCode === 0 ? [] : [`[exit code ${state.exitCode}]`];
      if (state.durationMs >= LONG_MS) notes.push(`[took ${(state.durationMs / 1_000).toFixed(1)} s]`);
      if (output.text === "" && state.exitCode === 0) notes.unshift("(no output)");
      return { text: text(...notes), exitCode: state.exitCode, ...whole };
    }
    case "killed": {
      if (facts.interrupted) {
        return {
          text: text(`[interrupted after ${seconds(state.durationMs)} s]`),
          interrupted: true,
          ...whole,
        };
      }
      const note = state.by === "signal" ? signalNote(state.signal) : timeoutNote(facts);
      return { text: text(note), isError: true, ...whole };
    }
    case "refused":
      return failure(`The command was not started: ${state.reason}`);
    case "running":
      return { text: text("[still running: it could not be ended]"), isError: true, ...whole };
    case "lost":
      return {
        text: text("[the box was restarted while this ran: how it ended is not known]"),
        unknown: true,
        ...whole,
      };
  }
}

function seconds(ms: number): string {
  return (ms / 1_000).toFixed(1);
}

function timeoutNote({ timeoutMs, limits }: EndFacts): string {
  return (
    `[timed out after ${timeoutMs / 1_000} s: the command and all it started were ended. ` +
    `For longer work set timeout_seconds (at most ${limits.maxTimeoutMs / 1_000}), or use background: true and poll with bash_output]`
  );
}

function signalNote(signal: string): string {
  const hint =
    signal === "SIGKILL" ? " (out of memory? see the box's limit in /sys/fs/cgroup/memory.max)" : "";
  return `[ended by ${signal}${hint}]`;
}

async function unknownEnd(
  given: BashInput,
  sandbox: Sandbox,
  state: CommandState | undefined,
): Promise<ToolResult> {
  const printed = state === undefined || state.outKept === 0 ? "" : await lastWords(sandbox, state);
  return {
    unknown: true,
    text: [
      `It is not known how this command ended: the worker stopped while it ran${sandbox.fresh ? ", and the box was made anew from the last save" : ""}.`,
      `It was started with: ${oneLine(given.command, 500)}`,
      printed === "" ? "Nothing it printed is left." : `It last printed:\n${printed}`,
      "It was not run again. Look at what it has done (files, processes, git status) before you repeat it.",
    ].join("\n"),
  };
}

async function lastWords(sandbox: Sandbox, state: CommandState): Promise<string> {
  const output = await outputOf(sandbox, state, 2_000);
  return output.text.slice(-2_000).toWellFormed();
}
