/** A host of fake sandboxes, one per session: fast, and without Docker. What outlives a sandbox is only what was saved of it. */
import type { SandboxHost } from "../../activities/sandbox/sandbox-host.ts";
import { createFakeSandbox, type FakeSandbox } from "./fake-sandbox.ts";

export interface FakeHost extends SandboxHost {
  /** Removes all sandboxes. */
  dispose(): Promise<void>;
}

/** @param opening what opening a sandbox waits for */
export function createFakeHost(opening: () => Promise<void> = async () => undefined): FakeHost {
  const open = new Map<string, Promise<FakeSandbox>>();
  const remove = async (id: string) => {
    const sandbox = await open.get(id);
    open.delete(id);
    await sandbox?.dispose();
  };
  return {
    name: "fake",
    async open({ sessionId }, signal) {
      await opening();
      signal?.throwIfAborted();
      const known = open.get(sessionId) ?? createFakeSandbox();
      open.set(sessionId, known);
      return known;
    },
    remove,
    removeUnused: async () => [],
    sessions: async () => [...open.keys()],
    volume: async (id) => (await open.get(id))?.identity.volume,
    close: async () => undefined,
    dispose: async () => void (await Promise.all([...open.keys()].map(remove))),
  };
}
