/** MCP servers over HTTP, on the worker and in the sandbox, behind one interface. */
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
import { McpFailure, reasonOf } from "./mcp-failure.ts";
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
      try {
        return await listed(connections, server, sandbox, AbortSignal.any([signal, limit]));
      } catch (error) {
        signal.throwIfAborted();
        if (error instanceof SandboxLost) throw error;
        const late = `it did not list its tools within ${startTimeout / 1_000} s (startTimeout)`;
        throw new McpFailure(limit.aborted ? late : reasonOf(error));
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
