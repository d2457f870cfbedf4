/** Describes how a command ended. Pure. */
import { shownRuns } from "../text/streams.ts";
import type { CommandState } from "../sandbox/sandbox.ts";
import type { CommandOutput } from "../sandbox/command-output.ts";
import { diskNote } from "./disk-note.ts";
import { failure } from "./failure.ts";
import type { ToolResult } from "./tool.ts";
import type { ToolLimits } from "../contract/tools.ts";

/** Commands that take at least this long get a line about their duration. */
const LONG_MS = 10_000;

interface EndFacts {
  readonly timeoutMs: number;
  readonly interrupted: boolean;
  readonly limits: ToolLimits;
  /** What the firewall refused while the command ran, as a line. */
  readonly network?: string | undefined;
}

/** The model's view of a command that ended: its output, and how it ended if that is worth a line. */
export function bashResult(state: CommandState, output: CommandOutput, facts: EndFacts): ToolResult {
  const body = output.text.endsWith("\n") ? output.text.slice(0, -1) : output.text;
  const shown = {
    runs: shownRuns(output.runs, body.length),
    ...(output.whole === undefined ? {} : { whole: output.whole }),
  };
  const text = (...notes: readonly string[]): string =>
    [body, ...notes].filter((part) => part !== "").join("\n");
  const disk = diskNote(state);
  switch (state.kind) {
    case "exited": {
      const notes = state.exitCode === 0 ? [] : [`[exit code ${state.exitCode}]`];
      if (state.durationMs >= LONG_MS) notes.push(`[took ${(state.durationMs / 1_000).toFixed(1)} s]`);
      if (output.text === "" && state.exitCode === 0) notes.unshift("(no output)");
      if (disk !== undefined) notes.push(disk);
      if (facts.network !== undefined) notes.push(facts.network);
      return { text: text(...notes), exitCode: state.exitCode, ...shown };
    }
    case "killed": {
      if (facts.interrupted) {
        return {
          text: text(`[interrupted after ${seconds(state.durationMs)} s]`),
          interrupted: true,
          ...shown,
        };
      }
      const note = disk ?? (state.by === "signal" ? signalNote(state.signal) : timeoutNote(facts));
      const notes = facts.network === undefined ? [note] : [note, facts.network];
      return { text: text(...notes), isError: true, ...shown };
    }
    case "refused":
      return failure(`The command was not started: ${state.reason}`);
    case "running":
      return { text: text("[still running: it could not be ended]"), isError: true, ...shown };
    case "lost":
      return {
        text: text("[the sandbox was restarted while this ran: how it ended is not known]"),
        unknown: true,
        ...shown,
      };
  }
}

function seconds(ms: number): string {
  return (ms / 1_000).toFixed(1);
}

function timeoutNote({ timeoutMs, limits }: EndFacts): string {
  return (
    `[timed out after ${timeoutMs / 1_000} s: the command and everything it started were ended. ` +
    `For longer work set timeout_seconds (at most ${limits.maxTimeoutMs / 1_000}), or use background: true and poll with bash_output]`
  );
}

function signalNote(signal: string): string {
  const hint =
    signal === "SIGKILL" ? " (out of memory? see the sandbox's limit in /sys/fs/cgroup/memory.max)" : "";
  return `[ended by ${signal}${hint}]`;
}
