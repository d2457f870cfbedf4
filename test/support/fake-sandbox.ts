/**
 * The tests' adapter of the sandbox port: a folder on disk and child processes of this one, for tests without Docker.
 * It isolates nothing. `/workspace` is that folder.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import type { SandboxCommand, CommandState, Sandbox } from "../../activities/sandbox/sandbox.ts";
import { createFakeFiles } from "./fake-sandbox-files.ts";
import { type FakeProcess, startProcess } from "./fake-process.ts";

export interface FakeSandbox extends Sandbox {
  /** The folder on disk that is /workspace. */
  readonly root: string;
  /** Commands in the order in which they really started. */
  readonly started: readonly SandboxCommand[];
  /** Forgets a command, as a recreated sandbox would. */
  forget(id: string): void;
  /** Ends all commands and removes the folder. */
  dispose(): Promise<void>;
}

export async function createFakeSandbox(): Promise<FakeSandbox> {
  const root = await mkdtemp(path.join(tmpdir(), "longhaul-fake-sandbox-"));
  const processes = new Map<string, FakeProcess>();
  const started: SandboxCommand[] = [];
  const find = (id: string): FakeProcess => {
    const found = processes.get(id);
    if (found === undefined) throw new Error(`no command ${id} in the fake sandbox`);
    return found;
  };
  const states = (): CommandState[] => [...processes.values()].map((process) => process.state());

  const start: Sandbox["start"] = async (command) => {
    const earlier = processes.get(command.id);
    if (earlier !== undefined) return earlier.state();
    started.push(command);
    const process = await startProcess(command, root);
    processes.set(command.id, process);
    return process.state();
  };
  const wait: Sandbox["wait"] = async (id, waiting = {}) => {
    const process = find(id);
    await process.ended(waiting.timeoutMs, waiting.signal);
    waiting.signal?.throwIfAborted();
    const state = process.state();
    waiting.onOutput?.(state.outBytes);
    return state;
  };

  return {
    container: "fake",
    identity: { host: "fake", volume: root, container: "fake", boot: "1" },
    empty: false,
    network: { reach: "everything" },
    root,
    started,
    files: createFakeFiles(root),
    start,
    feed: (id, _offset, bytes, { last }) => find(id).feed(bytes, last),
    wait,
    run: async (command, waiting) => {
      waiting?.signal?.throwIfAborted();
      await start(command);
      return wait(command.id, waiting);
    },
    read: async (id, stream, offset, maxBytes) =>
      find(id)
        .output(stream)
        .subarray(offset, offset + Math.min(maxBytes, 1_048_576)),
    // A folder and child processes have no terminal: tests of one use Docker.
    look: () => Promise.reject(new Error("the fake sandbox has no terminals")),
    resize: () => Promise.reject(new Error("the fake sandbox has no terminals")),
    kill: async (id, graceMs) => find(id).kill(graceMs ?? 1_000),
    state: async (id) => processes.get(id)?.state(),
    list: async () => states().filter(({ id }) => !id.includes("-")),
    discard: () => Promise.resolve(),
    forget: (id) => void processes.delete(id),
    dispose: async () => {
      await Promise.all([...processes.values()].map((process) => process.kill(0)));
      await rm(root, { recursive: true, force: true });
    },
  };
}
