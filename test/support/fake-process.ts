/** One command of the fake sandbox: a child process in its own group, its output kept in memory. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { SandboxCommand, CommandState, OutputStream } from "../../activities/sandbox/sandbox.ts";

export interface FakeProcess {
  state(): CommandState;
  output(stream: OutputStream): Buffer;
  /** @returns false if it has ended */
  feed(bytes: Uint8Array, last: boolean): Promise<boolean>;
  ended(timeoutMs: number | undefined, signal: AbortSignal | undefined): Promise<void>;
  kill(graceMs: number): Promise<CommandState>;
}

export async function startProcess(command: SandboxCommand, root: string): Promise<FakeProcess> {
  const startedAtMs = Date.now();
  const chunks: Record<OutputStream, Buffer[]> = { out: [], err: [], turns: [] };
  // Joined when read, not at each piece: the tests print megabytes.
  const output = (stream: OutputStream): Buffer => {
    const joined = Buffer.concat(chunks[stream]);
    chunks[stream] = [joined];
    return joined;
  };
  const bytesOf = (stream: OutputStream): number =>
    chunks[stream].reduce((total, chunk) => total + chunk.length, 0);
  const sizes = (): Omit<CommandState, "kind"> => {
    const outBytes = bytesOf("out");
    const errBytes = bytesOf("err");
    const turnsBytes = bytesOf("turns");
    return {
      id: command.id,
      startedAtMs,
      outBytes,
      errBytes,
      outKept: outBytes,
      errKept: errBytes,
      ...(command.tellApart === true ? { turnsBytes, turnsKept: turnsBytes } : {}),
    };
  };
  let last: OutputStream = "out";
  const merge = (stream: OutputStream, data: Buffer): void => {
    if (stream !== last) {
      const turn = Buffer.alloc(8);
      turn.writeUIntLE(bytesOf("out") * 2 + (stream === "err" ? 1 : 0), 0, 6);
      chunks.turns.push(turn);
    }
    last = stream;
    chunks.out.push(data);
  };
  const cwd = path.join(root, path.posix.relative("/workspace", command.cwd ?? "/workspace"));
  const refused = (reason: string): FakeProcess => ({
    state: () => ({ ...sizes(), kind: "refused", reason }),
    output,
    feed: async () => false,
    ended: async () => {},
    kill: async () => ({ ...sizes(), kind: "refused", reason }),
  });
  if (!existsSync(cwd)) return refused(`no such folder: ${command.cwd}`);

  const [program = "", ...args] = command.argv;
  const child: ChildProcess = spawn(program, args, {
    cwd,
    detached: true,
    env: { PATH: searchPath(), HOME: root, LANG: "C.UTF-8", ...command.env },
    stdio: ["pipe", "pipe", "pipe"],
  });
  const spawned = await Promise.race([
    once(child, "spawn").then(() => undefined),
    once(child, "error").then(([error]) => error as Error),
  ]);
  if (spawned !== undefined) return refused(spawned.message);

  let by: "timeout" | "request" | "signal" = "signal";
  let end: { code: number | null; signal: string | null; atMs: number } | undefined;
  const isMerged = command.mergeOutput === true;
  child.stdout?.on("data", (data: Buffer) => (isMerged ? merge("out", data) : chunks.out.push(data)));
  child.stderr?.on("data", (data: Buffer) => (isMerged ? merge("err", data) : chunks.err.push(data)));
  child.stdin?.on("error", () => {});
  child.stdin?.write(command.stdin ?? new Uint8Array());
  if (command.more !== true) child.stdin?.end();
  // `exit`, not `close`: a child that holds the pipe must not keep the command open. The pipe's content gets one turn.
  const exited = new Promise<void>((resolve) => {
    child.once("exit", (code, signal) => {
      const finish = (): void => {
        end ??= { code, signal, atMs: Date.now() };
        resolve();
      };
      child.once("close", finish);
      setTimeout(finish, 500);
    });
  });
  const signalGroup = (signal: NodeJS.Signals): void => {
    try {
      process.kill(-(child.pid ?? 0), signal);
    } catch {
      // The group has already ended.
    }
  };
  const timer =
    command.timeoutMs === undefined
      ? undefined
      : setTimeout(() => {
          by = "timeout";
          signalGroup("SIGKILL");
        }, command.timeoutMs);
  void exited.then(() => clearTimeout(timer));

  const state = (): CommandState => {
    if (end === undefined) return { ...sizes(), kind: "running", pid: child.pid ?? 0 };
    const durationMs = end.atMs - startedAtMs;
    if (end.signal === null || end.code !== null) {
      return { ...sizes(), kind: "exited", exitCode: end.code ?? 0, durationMs };
    }
    return { ...sizes(), kind: "killed", by, signal: end.signal, durationMs };
  };

  return {
    state,
    output,
    feed: async (bytes, last) => {
      if (end !== undefined) return false;
      await new Promise((resolve) => child.stdin?.write(bytes, resolve));
      if (last) child.stdin?.end();
      return true;
    },
    ended: async (timeoutMs, signal) => {
      const stop = new AbortController();
      const signals = signal === undefined ? stop.signal : AbortSignal.any([signal, stop.signal]);
      const late = sleep(timeoutMs ?? FOREVER_MS, undefined, { signal: signals }).catch(() => undefined);
      await Promise.race([exited, late]);
      stop.abort();
    },
    kill: async (graceMs) => {
      if (end === undefined) {
        by = "request";
        signalGroup("SIGTERM");
        await Promise.race([exited, sleep(graceMs, undefined, { ref: false })]);
      }
      signalGroup("SIGKILL");
      await exited;
      return state();
    },
  };
}

/** The longest time that a timer takes. */
const FOREVER_MS = 2 ** 31 - 1;

let foundPath: string | undefined;

/**
 * The folder of the real python3 comes first: with a version manager's shim in front of it, each start takes 0.2 s
 * instead of 0.02 s, and each save starts it.
 */
function searchPath(): string {
  if (foundPath !== undefined) return foundPath;
  const all = process.env["PATH"] ?? "";
  const python = spawnSync("python3", ["-c", "import sys; print(sys.executable)"], { encoding: "utf8" });
  foundPath = python.status === 0 ? `${path.dirname(python.stdout)}:${all}` : all;
  return foundPath;
}
