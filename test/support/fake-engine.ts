/** An engine whose sandboxes are folders, one a session, and which can lose them permanently; hosts of several workers share it. */
import { type Sandbox, SandboxLost } from "../../activities/sandbox/sandbox.ts";
import type { SandboxHost } from "../../activities/sandbox/sandbox-host.ts";
import { createFakeSandbox, type FakeSandbox } from "./fake-sandbox.ts";

export interface FakeEngine {
  readonly host: SandboxHost;
  /** The session's current sandbox. */
  fake(sessionId: string): FakeSandbox | undefined;
  /** How many were created so far. */
  readonly made: number;
  /** Awaited before an opening completes; default nothing. */
  beforeOpen: (signal: AbortSignal | undefined) => Promise<void>;
  /** Awaited by a program of ours in a sandbox, such as one that saves or restores files; default nothing. */
  beforeProgram: (signal: AbortSignal | undefined) => Promise<void>;
  /** Awaited before a file is written; default nothing. */
  beforeFile: () => Promise<void>;
  close(): Promise<void>;
}

export function createFakeEngine(name = "engine"): FakeEngine {
  const fakes = new Map<string, { fake: FakeSandbox; sandbox: Sandbox; isGone: boolean }>();
  const engine: FakeEngine = {
    host: {
      name,
      async open({ sessionId }, signal) {
        const entry = fakes.get(sessionId) ?? (await make(sessionId));
        await engine.beforeOpen(signal);
        return entry.sandbox;
      },
      async remove(sessionId) {
        const found = fakes.get(sessionId);
        fakes.delete(sessionId);
        if (found === undefined) return;
        found.isGone = true;
        await found.fake.dispose();
      },
      removeUnused: async () => [],
      sessions: async () => [...fakes.keys()],
      volume: async (sessionId) => fakes.get(sessionId)?.fake.root,
      close: async () => {},
    },
    fake: (sessionId) => fakes.get(sessionId)?.fake,
    made: 0,
    beforeOpen: async () => {},
    beforeProgram: async () => {},
    beforeFile: async () => {},
    async close() {
      await Promise.all([...fakes.keys()].map((id) => engine.host.remove(id)));
    },
  };

  async function make(sessionId: string) {
    const fake = await createFakeSandbox();
    Object.assign(engine, { made: engine.made + 1 });
    const container = `${name}-${engine.made}`;
    const alive = () => {
      if (entry.isGone) throw new SandboxLost("the sandbox was removed");
    };
    const sandbox: Sandbox = {
      ...fake,
      container,
      identity: { host: name, volume: fake.root, container, boot: "1" },
      files: {
        ...fake.files,
        async write(...args) {
          await engine.beforeFile();
          return fake.files.write(...args);
        },
      },
      async run(command, options) {
        alive();
        if (command.id.startsWith("ws-")) await engine.beforeProgram(options?.signal);
        return fake.run(command, options);
      },
      async state(id) {
        alive();
        return fake.state(id);
      },
    };
    const entry = { fake, sandbox, isGone: false };
    fakes.set(sessionId, entry);
    return entry;
  }
  return engine;
}

/** Never resolves by itself, like an engine that hangs. @throws the signal's reason */
export function untilAborted(signal: AbortSignal | undefined): Promise<void> {
  return new Promise((_resolve, reject) => {
    signal?.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
  });
}
