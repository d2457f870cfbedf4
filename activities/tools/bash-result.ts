/** The result of a command: its output, how it ended, and notes about a full disk or a refused address. */
import { shownRuns } from "../text/streams.ts";
import type { CommandState, DiskFacts, Sandbox } from "../sandbox/sandbox.ts";
import type { CommandOutput } from "../sandbox/command-output.ts";
import { failure, type ToolResult } from "./tool.ts";
import type { ToolLimits } from "../contract/tools.ts";
import { showSize } from "./paths.ts";
import { takeFirst } from "../text/lists.ts";

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
  const outputFields = {
    runs: shownRuns(output.runs, body.length),
    whole: output.whole,
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
      return { text: text(...notes), exitCode: state.exitCode, ...outputFields };
    }
    case "killed": {
      if (facts.interrupted) {
        return {
          text: text(`[interrupted after ${seconds(state.durationMs)} s]`),
          interrupted: true,
          ...outputFields,
        };
      }
      const note = disk ?? (state.by === "signal" ? signalNote(state.signal) : timeoutNote(facts));
      const notes = facts.network === undefined ? [note] : [note, facts.network];
      return { text: text(...notes), isError: true, ...outputFields };
    }
    case "refused":
      return failure(`The command was not started: ${state.reason}`);
    case "running":
      return { text: text("[still running: it could not be ended]"), isError: true, ...outputFields };
    case "lost":
      return {
        text: text("[the sandbox was restarted while this ran: how it ended is not known]"),
        unknown: true,
        ...outputFields,
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

/** Exit code of a shell whose program the kernel killed for exceeding the largest file size: 128 + SIGXFSZ. */
const FILE_TOO_LARGE = 153;

/** A line about the disk, if the disk affected how the command went; otherwise undefined. */
export function diskNote(state: CommandState): string | undefined {
  if (state.disk !== undefined) {
    return state.kind === "killed" && state.by === "disk"
      ? `[ended, with everything that ran in the sandbox: ${reached(state.disk)}. ${FREE}]`
      : `[no file could grow in this command: ${reached(state.disk)}. ${FREE}]`;
  }
  const tooLarge =
    (state.kind === "exited" && state.exitCode === FILE_TOO_LARGE) ||
    (state.kind === "killed" && state.signal === "SIGXFSZ");
  return tooLarge
    ? "[a file would have grown larger than the sandbox's whole disk limit (sandbox.disk), so the program that wrote it was ended]"
    : undefined;
}

const FREE =
  "No file can grow until something is deleted: look with du -xh /workspace ~ | sort -h | tail, then rm what can be made again";

function reached({ usedBytes, unseenBytes = 0, limitBytes, freeBytes }: DiskFacts): string {
  if (usedBytes <= limitBytes)
    return `the host's disk is nearly full, ${showSize(freeBytes)} left (sandbox.diskFree)`;
  const over = `its files take more than the ${showSize(limitBytes)} of its disk limit (sandbox.disk)`;
  return unseenBytes === 0
    ? over
    : `${over}, ${showSize(unseenBytes)} of them where they cannot be counted, such as deleted files that a process holds`;
}

/** What programs print when a connection fails. The firewall is queried only then, as that takes some 0.4 s. */
const SIGNS =
  /ECONNREFUSED|EHOSTUNREACH|EPERM|EACCES|PermissionError|connection refused|operation not permitted|permission denied|(could|can)(not| not|n't) (connect|reach)|failed to (connect|establish)|unable to connect|unreachable|connection error|fetch failed/i;
const MAX_NAMED = 5;

/** @returns undefined if nothing was refused while the command ran */
export async function networkNote(
  { refused }: Pick<Sandbox, "refused">,
  state: CommandState,
  output: string,
): Promise<string | undefined> {
  if (refused === undefined || !("durationMs" in state) || !SIGNS.test(output)) return undefined;
  const endpoints = await refused(state.durationMs);
  if (endpoints.length === 0) return undefined;
  const { shown, more } = takeFirst(endpoints, MAX_NAMED);
  const labels = shown.map(({ address, port }) => `${address} port ${port}`);
  const addresses = [...new Set(shown.map(({ address }) => address))];
  return (
    `[the sandbox's firewall refused ${labels.join(", ")}${more > 0 ? " and others" : ""}: it is not on the ` +
    `public internet, so another attempt will fail too. The user can allow it for a new session: sandbox.allow: [${addresses.join(", ")}]]`
  );
}
