/** MCP servers over HTTP, on the worker and in the sandbox, behind one interface. */
import { setTimeout as sleep } from "node:timers/promises";
import { SandboxLost } from "../sandbox/sandbox-lost.ts";
import { isRemote } from "../config/mcp-settings.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import type { McpAccess } from "./access.ts";
import { callFromWorker } from "./call-from-worker.ts";
import { callInSandbox } from "./call-in-sandbox.ts";
import type { Store } from "../store/db.ts";
import { createLogins } from "./logins.ts";
import { createConnections, type Connections } from "./connections.ts";
import type { ListedTools, Mcp, ServerOf } from "./mcp.ts";
import { isPassing, McpFailure, reasonOf } from "./mcp-failure.ts";
import { listTools } from "./protocol-client.ts";
import { greetNew } from "./sandbox-servers.ts";
import { cancelTask } from "./tasks.ts";

export function createLoadedMcp(access: McpAccess, store: Pick<Store, "db"> | undefined): Mcp {
  const logins = store && createLogins(store, access.credentialsKey);
  const connections = createConnections(access, logins);
  return {
    async list(server, sandbox, signal) {
      const { startTimeout } = server.settings;
      const limit = AbortSignal.timeout(startTimeout);
      let heard: unknown;
      try {
        return await whilePassing(server, AbortSignal.any([signal, limit]), {
          ask: (either) => listed(connections, server, sandbox, either),
          heard: (error) => (heard = error),
        });
      } catch (error) {
        signal.throwIfAborted();
        if (error instanceof SandboxLost) throw error;
        if (!limit.aborted) throw new McpFailure(reasonOf(error));
        const late = `it did not list its tools within ${startTimeout / 1_000} s (startTimeout)`;
        throw new McpFailure(heard === undefined ? late : `${late}: ${reasonOf(heard)}`);
      }
    },
    call: (call, context) =>
      isRemote(call.server.settings)
        ? callFromWorker(connections, call, context)
        : callInSandbox(call, context),
    async cancelTask(server, task) {
      if (!isRemote(server.settings)) return;
      const limit = AbortSignal.timeout(server.settings.startTimeout);
      await connections.use(server, limit, (client) => cancelTask(client, task));
    },
    close: () => connections.close(),
  };
}

/** Before a server is asked again. A required one is asked for as long as it has to start. Source: ours. */
const AGAIN_AFTER_MS = [300, 1_000] as const;

/** Asks again if the failure may pass: a server that is just being started, or has too much to do. */
async function whilePassing<T>(
  { settings }: ServerOf,
  signal: AbortSignal,
  {
    ask,
    heard,
  }: { readonly ask: (signal: AbortSignal) => Promise<T>; readonly heard: (error: unknown) => void },
): Promise<T> {
  for (let tries = 0; ; tries += 1) {
    try {
      return await ask(signal);
    } catch (error) {
      const waitMs = AGAIN_AFTER_MS[settings.required ? Math.min(tries, 1) : tries];
      if (waitMs === undefined || signal.aborted || !isPassing(error)) throw error;
      heard(error);
      await sleep(waitMs, undefined, { signal });
    }
  }
}

async function listed(
  connections: Connections,
  server: ServerOf,
  sandbox: Sandbox | undefined,
  signal: AbortSignal,
): Promise<ListedTools> {
  const options = { timeout: server.settings.startTimeout, signal };
  if (isRemote(server.settings))
    return connections.use(server, signal, (client) => listTools(client, options));
  if (sandbox === undefined) throw new McpFailure("the sandbox that it runs in could not be opened");
  const client = await greetNew({ ...server, sandbox }, { signal });
  try {
    return await listTools(client, options);
  } finally {
    await client.close();
  }
}
