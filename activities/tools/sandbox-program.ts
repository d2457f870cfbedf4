/** Short programs the read-only tools run in the sandbox. */
import { randomBytes } from "node:crypto";
import type { SandboxCommand, CommandState, Sandbox } from "../sandbox/sandbox.ts";
import { ToolFailure } from "./failure.ts";
import type { ToolContext } from "./tool.ts";

const READ_BYTES = 1_048_576;
const GRACE_MS = 200;

/**
 * Bash that resolves its first argument, a path relative to the workspace, and refuses it where it leads out, also by
 * links: check and use are one process. Exit 94: a pipe, socket or device, whose reader would wait for ever; 96: no such
 * path; 97: outside.
 */
export const RESOLVE_TARGET = `
root=$(pwd -P)
target=$(realpath -e -- "$1" 2>/dev/null) || exit 96
case $target/ in "$root"/*) ;; *) exit 97 ;; esac
[ -d "$target" ] || [ -f "$target" ] || exit 94
case $target/ in */node_modules/*) modules=() ;; *) modules=(--glob '!node_modules') ;; esac
`;

export interface ProgramEnd {
  readonly out: Buffer;
  readonly err: string;
  readonly exitCode: number;
}

/**
 * Runs `script` with arguments, under an id of its own each time: these tools may simply run again.
 * @throws ToolFailure when it takes too long or cannot be started; the abort reason
 */
export async function runProgram(
  context: ToolContext,
  script: string,
  args: readonly string[],
  maxBytes: number,
): Promise<ProgramEnd> {
  const sandbox = await context.sandbox();
  const id = `${context.callKey}-${randomBytes(4).toString("hex")}`;
  const { timeoutMs } = context.limits;
  const state = await endOf(
    sandbox,
    { id, argv: ["bash", "-c", script, "bash", ...args], timeoutMs, maxOutputBytes: maxBytes },
    context,
  );
  if (state.kind === "refused")
    throw new ToolFailure(`It could not be started in the sandbox: ${state.reason}`);
  if (state.kind !== "exited") {
    throw new ToolFailure(
      `It took more than ${timeoutMs / 1_000} s and was ended. Narrow it: a path, a more exact pattern.`,
    );
  }
  return {
    out: await readAll(sandbox, id, "out", Math.min(state.outKept, maxBytes)),
    err: (await readAll(sandbox, id, "err", Math.min(state.errKept, 4_096))).toString("utf8"),
    exitCode: state.exitCode,
  };
}

async function endOf(sandbox: Sandbox, command: SandboxCommand, context: ToolContext): Promise<CommandState> {
  const { signal } = context;
  signal.throwIfAborted();
  try {
    const state = await sandbox.run(command, { timeoutMs: context.limits.timeoutMs + 2_000, signal });
    if (state.kind !== "running") return state;
  } catch (error) {
    if (!signal.aborted) throw error;
  }
  if (signal.aborted && (await sandbox.state(command.id)) === undefined) signal.throwIfAborted();
  const killed = await sandbox.kill(command.id, GRACE_MS);
  signal.throwIfAborted();
  return killed;
}

async function readAll(sandbox: Sandbox, id: string, stream: "out" | "err", length: number): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for (let at = 0; at < length;) {
    const bytes = await sandbox.read(id, stream, at, Math.min(READ_BYTES, length - at));
    if (bytes.length === 0) break;
    parts.push(bytes);
    at += bytes.length;
  }
  return Buffer.concat(parts);
}
