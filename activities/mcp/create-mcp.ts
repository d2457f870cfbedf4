/** MCP servers over HTTP, on the worker and in the sandbox, behind one interface. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Client } from "@modelcontextprotocol/client";
import { isRemote } from "../config/mcp-settings.ts";
import { SandboxLost, type Sandbox } from "../sandbox/sandbox.ts";
import type { Store } from "../store/db.ts";
import { LeaveRunning, type ToolContext, type ToolResult } from "../tools/tool.ts";
import type { McpAccess } from "./access.ts";
import { createConnections, type Connections } from "./connections.ts";
import { converse, type Line } from "./converse.ts";
import { isPassing, serverReason, unknownEnd, withNotice, failedCall } from "./failures.ts";
import { createLogins } from "./logins.ts";
import { type ListedTools, type Mcp, McpFailure, type ServerOf, type McpCall } from "./mcp.ts";
import { listTools, isListDue } from "./protocol-client.ts";
import {
  greetNew,
  clientFor,
  runningProgram,
  withLastOutput,
  type Program,
  type SandboxServer,
} from "./sandbox-servers.ts";
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
        if (!limit.aborted) throw new McpFailure(serverReason(error));
        const late = `it did not list its tools within ${startTimeout / 1_000} s (startTimeout)`;
        throw new McpFailure(heard === undefined ? late : `${late}: ${serverReason(heard)}`);
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

/** Before a server is asked again. A required one is asked for as long as it has to start. Chosen: a server that restarts is back within seconds. */
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

const SENT = "sent";

/**
 * A call to a server over HTTP, or to one of the worker's own programs. A call that a lost attempt may have sent is not sent again, unless it is repeatable. A server of the older revisions that has
 * forgotten our session refuses the call, which is then sent again in a new session.
 */
async function callFromWorker(
  connections: Connections,
  call: McpCall,
  context: ToolContext,
): Promise<ToolResult> {
  const { server, isRepeatable, state, task } = call;
  const { signal } = context;
  if (state.sent === SENT && task === undefined && !isRepeatable)
    return unknownEnd(call, "the worker that made it was lost before the answer was stored");
  const isRestarted = server.settings.where === "worker" && !connections.has(server);
  let isConnected = false;
  const exchange = <T>(body: (client: Client) => Promise<T>): Promise<T> =>
    connections.use(
      server,
      signal,
      (client) => {
        isConnected = true;
        lookAtList(client, call);
        return body(client);
      },
      call.onReconnected,
    );
  const result = await converse(call, context, {
    mark: isRepeatable ? undefined : SENT,
    exchange: (_name, body) => exchange(body),
    request: exchange,
    // No server received the request.
    isUnsent: (error) => !isConnected || /ECONNREFUSED|ENOTFOUND|EAI_AGAIN/.test(serverReason(error)),
  });
  return isRestarted && isConnected ? withNotice(server.name, result) : result;
}

/** In parallel with the call, which does not wait for it. */
function lookAtList(client: Client, { server, onListed }: McpCall): void {
  if (!isListDue(client)) return;
  const options = { timeout: server.settings.timeout, signal: AbortSignal.timeout(server.settings.timeout) };
  listTools(client, options)
    // A list that is not whole says nothing about what is missing.
    .then(async (listed) => (listed.isPartial === true ? undefined : onListed(listed)))
    .catch(() => undefined);
}

/**
 * A call to a server in the sandbox. The program continues when a worker is lost: the next attempt finds its answer or waits for it. The outcome is
 * `unknown` if the program that received the call is gone.
 */
async function callInSandbox(call: McpCall, context: ToolContext): Promise<ToolResult> {
  const { server, isRepeatable, state, task } = call;
  const { signal } = context;
  const of: SandboxServer = { ...server, sandbox: await context.sandbox() };
  let program: Program;
  try {
    program = await runningProgram(of);
    const isOther = state.sent !== undefined && state.sent !== program.key;
    if ((isOther && !isRepeatable) || (task !== undefined && program.isNew))
      return unknownEnd(
        call,
        `the program of the server ${server.name} that got it is gone, and a new one was started`,
      );
    if (program.isNew) await greetAgain(of, call, signal);
  } catch (error) {
    return notSent(call, error, signal);
  }
  const result = await converse(call, context, lineTo(of, program, call, context));
  return program.isNew ? withNotice(server.name, result) : result;
}

/** A restarted program may have different tools. */
async function greetAgain(of: SandboxServer, { era, onListed }: McpCall, signal: AbortSignal): Promise<void> {
  const client = await greetNew(of, { era, signal });
  try {
    await onListed(await listTools(client, { timeout: of.settings.startTimeout, signal }));
  } finally {
    await client.close();
  }
}

function lineTo(of: SandboxServer, program: Program, { era, state }: McpCall, { signal }: ToolContext): Line {
  let isConnected = false;
  return {
    mark: program.key,
    async exchange(prefix, body) {
      // An answer to an earlier attempt may be there already.
      const from = state.sent === program.key ? 0 : program.printed;
      const { client, transport } = await clientFor(of, program, { prefix, from, era, signal });
      isConnected = true;
      try {
        return await body(client);
      } catch (error) {
        if (transport.failure === undefined || signal.aborted) throw error;
        throw isLost(transport.failure)
          ? transport.failure
          : await withLastOutput(of.sandbox, program.id, transport.failure);
      } finally {
        await client.close();
      }
    },
    isLost,
    isUnsent: () => !isConnected,
  };
}

function notSent(call: McpCall, error: unknown, signal: AbortSignal): ToolResult {
  if (signal.reason instanceof LeaveRunning) throw signal.reason;
  if (isLost(error)) throw error;
  return failedCall(call, error, { isSent: false, isStopped: signal.aborted });
}

const isLost = (error: unknown): error is SandboxLost => error instanceof SandboxLost;
