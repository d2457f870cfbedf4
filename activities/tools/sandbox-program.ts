/** Short programs that the read-only tools run in the sandbox. */
import { randomBytes } from "node:crypto";
import type { SandboxCommand, CommandState, Sandbox } from "../sandbox/sandbox.ts";
import { readBytes } from "../sandbox/command-output.ts";
import { ToolFailure, type ToolContext } from "./tool.ts";
import { showName } from "./paths.ts";
import { lookRemark, pathAlike } from "./real-path.ts";

const GRACE_MS = 200;

/**
 * Resolves the first argument, a path relative to the workspace, and refuses it if it leads outside, also through
 * links: check and use are one process. Pipes, sockets and devices are refused because reading them would block
 * forever.
 */
const RESOLVE_TARGET = `
root=$(pwd -P)
target=$(realpath -e -- "$1" 2>/dev/null) || exit 96
case $target/ in "$root"/*) ;; *) exit 97 ;; esac
[ -d "$target" ] || [ -f "$target" ] || exit 94
case $target/ in */node_modules/*) modules=() ;; *) modules=(--glob '!node_modules') ;; esac
`;

interface ProgramEnd {
  readonly out: Buffer;
  readonly err: string;
  readonly exitCode: number;
  /** The path that was used, and a line if it is another one than that asked for, which looks the same. */
  readonly path: string;
  readonly remark: string | undefined;
}

/**
 * Runs a bash script with the path as `$target` in the workspace `$root`, under a new id each time: these tools may
 * simply run again.
 * @param args the path, relative to the workspace, and the script's other arguments
 * @throws ToolFailure if the path is missing, leads outside or is neither file nor folder, or if the script takes too
 * long or cannot be started; the abort reason
 */
export async function runOnPath(
  context: ToolContext,
  script: string,
  args: Args,
  maxBytes: number,
): Promise<ProgramEnd> {
  const [path, ...more] = args;
  const end = await runOnce(context, script, args, maxBytes);
  if (end !== undefined) return { ...end, path, remark: undefined };
  const alike = await pathAlike((await context.sandbox()).files, path);
  const other = alike === undefined ? undefined : await runOnce(context, script, [alike, ...more], maxBytes);
  if (alike === undefined || other === undefined)
    throw new ToolFailure(`${showName(path)} does not exist. Look around with list_directory.`);
  return { ...other, path: alike, remark: lookRemark(path, alike) };
}

type Args = readonly [path: string, ...more: string[]];

/** @returns undefined if the path is missing */
async function runOnce(
  context: ToolContext,
  script: string,
  args: Args,
  maxBytes: number,
): Promise<Pick<ProgramEnd, "out" | "err" | "exitCode"> | undefined> {
  const sandbox = await context.sandbox();
  const id = `${context.callKey}-${randomBytes(4).toString("hex")}`;
  const { timeoutMs } = context.limits;
  const state = await endOf(
    sandbox,
    {
      id,
      argv: ["bash", "-c", RESOLVE_TARGET + script, "bash", ...args],
      timeoutMs,
      maxOutputBytes: maxBytes,
    },
    context,
  );
  if (state.kind === "refused")
    throw new ToolFailure(`The search or read could not be started in the sandbox: ${state.reason}`);
  if (state.kind !== "exited") {
    throw new ToolFailure(
      `This took more than ${timeoutMs / 1_000} s and was ended. Narrow it, with a path or a more exact pattern.`,
    );
  }
  const name = showName(args[0]);
  if (state.exitCode === 94)
    throw new ToolFailure(`${name} is a pipe, socket or device, neither file nor folder.`);
  if (state.exitCode === 96) return undefined;
  if (state.exitCode === 97) throw new ToolFailure(`${name} leads outside /workspace.`);
  const out = await readBytes(sandbox, { id, from: 0, length: Math.min(state.outKept, maxBytes) });
  const err = await readBytes(sandbox, {
    id,
    stream: "err",
    from: 0,
    length: Math.min(state.errKept, 4_096),
  });
  return { out, err: err.toString("utf8"), exitCode: state.exitCode };
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
