/** A sandbox port over ordinary processes in a temporary folder: for code that only starts commands and reads output. */
import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { BoxCommand, BoxFiles, CommandState, Sandbox } from "../../activities/sandbox/sandbox.ts";

export interface LocalBox extends Sandbox {
  readonly folder: string;
  /** Every command that was started, in order. */
  readonly commands: readonly BoxCommand[];
  dispose(): Promise<void>;
}

interface Finished {
  readonly state: CommandState;
  readonly out: Buffer;
  readonly err: Buffer;
}

export async function createLocalBox(): Promise<LocalBox> {
  const folder = await mkdtemp(join(tmpdir(), "longhaul-box-"));
  const running = new Map<string, Promise<Finished>>();
  const commands: BoxCommand[] = [];
  const finished = async (id: string): Promise<Finished> => {
    const found = running.get(id);
    if (found === undefined) throw new Error(`No command ${id} was started.`);
    return await found;
  };
  return {
    folder,
    commands,
    container: "local",
    fresh: true,
    start: async (command) => {
      if (running.has(command.id)) throw new Error(`The command id ${command.id} was used twice.`);
      commands.push(command);
      running.set(command.id, runLocally(folder, command));
      return (await finished(command.id)).state;
    },
    async run(this: Sandbox, command: BoxCommand) {
      return await this.start(command);
    },
    wait: async (id) => (await finished(id)).state,
    read: async (id, stream, offset, maxBytes) => {
      const { out, err } = await finished(id);
      return (stream === "out" ? out : err).subarray(offset, offset + maxBytes);
    },
    kill: async (id) => (await finished(id)).state,
    state: async (id) => (running.has(id) ? (await finished(id)).state : undefined),
    list: async () => await Promise.all([...running.keys()].map(async (id) => (await finished(id)).state)),
    get files(): BoxFiles {
      throw new Error("This box only runs commands.");
    },
    dispose: async () => {
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function runLocally(folder: string, command: BoxCommand): Promise<Finished> {
  const startedAtMs = Date.now();
  const [program = "", ...args] = command.argv;
  const child = spawn(program, args, { cwd: folder, env: { PATH: process.env["PATH"], ...command.env } });
  const out: Buffer[] = [];
  const err: Buffer[] = [];
  child.stdout.on("data", (piece: Buffer) => out.push(piece));
  child.stderr.on("data", (piece: Buffer) => err.push(piece));
  // A command that ends without reading closes the pipe: that is no failure of ours.
  child.stdin.on("error", () => {});
  child.stdin.end(command.stdin === undefined ? undefined : Buffer.from(command.stdin));
  const exitCode = await new Promise<number>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => resolve(code ?? 137));
  });
  const outAll = Buffer.concat(out);
  const errAll = Buffer.concat(err);
  return {
    out: outAll,
    err: errAll,
    state: {
      id: command.id,
      kind: "exited",
      exitCode,
      startedAtMs,
      durationMs: Date.now() - startedAtMs,
      outBytes: outAll.length,
      errBytes: errAll.length,
      outKept: outAll.length,
      errKept: errAll.length,
    },
  };
}
