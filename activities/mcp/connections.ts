/** The worker's connections to servers, over HTTP or to its own programs: one per session and server, while in use. */
import { StreamableHTTPClientTransport, type Client } from "@modelcontextprotocol/client";
import { createOutgoing, type Outgoing } from "../process/outgoing-fetch.ts";
import { headersFor, type McpAccess } from "./access.ts";
import { readingMessages } from "./answers.ts";
import { isStaleSession, serverReason } from "./failures.ts";
import type { Logins } from "./logins.ts";
import { McpFailure, type ServerOf } from "./mcp.ts";
import { connected, createProtocolClient, hearChanges } from "./protocol-client.ts";
import { WorkerProgram } from "./worker-program.ts";

/** Source: Temporal's own plug-in for MCP. */
const IDLE_MS = 5 * 60_000;

export interface Connections {
  /**
   * Runs `body` with the open connection, or a new one, which stays open as long as `body` takes. Sessions share none: a server
   * of the older revisions keeps state per connection. If it has forgotten that, it has refused the request before it did
   * anything: `body` runs once more, with a new connection.
   * @param onReconnected before it runs once more
   * @throws what `body` throws, and what connecting does
   */
  use<T>(
    server: ServerOf,
    signal: AbortSignal,
    body: (client: Client) => Promise<T>,
    onReconnected?: () => Promise<void>,
  ): Promise<T>;
  /** Whether a connection is open. */
  has(server: ServerOf): boolean;
  close(): Promise<void>;
}

interface Entry {
  readonly client: Promise<Client>;
  /** How many calls are in flight. */
  users: number;
  /** Runs while there are none. */
  timer: NodeJS.Timeout | undefined;
}

/** @param idleMs how long a connection that no call uses stays open */
export function createConnections(
  access: McpAccess,
  logins: Logins | undefined,
  idleMs = IDLE_MS,
): Connections {
  const entries = new Map<string, Entry>();
  const network = createOutgoing();

  function drop(key: string, entry: Entry): Promise<void> {
    clearTimeout(entry.timer);
    forget(key, entry);
    return entry.client.then((client) => client.close()).catch(() => undefined);
  }

  function forget(key: string, entry: Entry): void {
    if (entries.get(key) === entry) entries.delete(key);
  }

  function release(key: string, entry: Entry): void {
    entry.users -= 1;
    if (entry.users > 0) return;
    if (entries.get(key) !== entry) return void drop(key, entry);
    entry.timer = setTimeout(() => void drop(key, entry), idleMs);
    entry.timer.unref();
  }

  function open(key: string, server: ServerOf, signal: AbortSignal): Entry {
    const client = network.then((outgoing) => connect(server, { ...access, logins }, outgoing, signal));
    const entry: Entry = { client, users: 0, timer: undefined };
    entries.set(key, entry);
    client.then((made) => (made.onclose = () => void drop(key, entry))).catch(() => drop(key, entry));
    return entry;
  }

  async function useOnce<T>(
    server: ServerOf,
    signal: AbortSignal,
    body: (client: Client) => Promise<T>,
  ): Promise<T> {
    const key = keyOf(server);
    const entry = entries.get(key) ?? open(key, server, signal);
    entry.users += 1;
    clearTimeout(entry.timer);
    try {
      return await body(await entry.client).catch((error: unknown) => {
        // If two calls find the connection stale, only the first opens a new one. The last that uses the old one closes it.
        if (isStaleSession(error)) forget(key, entry);
        throw error;
      });
    } finally {
      release(key, entry);
    }
  }

  return {
    use: (server, signal, body, onReconnected) =>
      onceMore((run) => useOnce(server, signal, run), body, onReconnected),
    has: (server) => entries.has(keyOf(server)),
    async close() {
      await Promise.all([...entries].map(([key, entry]) => drop(key, entry)));
      await network.then(({ close }) => close());
    },
  };
}

/** Uses a connection, and once more if the server has forgotten the first one's session. */
async function onceMore<T>(
  use: (body: (client: Client) => Promise<T>) => Promise<T>,
  body: (client: Client) => Promise<T>,
  onReconnected: (() => Promise<void>) | undefined,
): Promise<T> {
  let isConnected = false;
  try {
    return await use((client) => {
      isConnected = true;
      return body(client);
    });
  } catch (error) {
    if (!isConnected || !isStaleSession(error)) throw error;
    return use(async (client) => {
      await onReconnected?.();
      return body(client);
    });
  }
}

const keyOf = ({ sessionId, name, settings }: ServerOf) => JSON.stringify([sessionId, name, settings.url]);

async function connect(
  server: ServerOf,
  access: McpAccess & { readonly logins: Logins | undefined },
  { fetch }: Outgoing,
  signal: AbortSignal,
): Promise<Client> {
  const { name, settings } = server;
  if (settings.where === "worker") return connectProgram(server, access, signal);
  const { startTimeout, url = "" } = settings;
  const { logins } = access;
  if (settings.auth === "oauth" && logins === undefined) throw new McpFailure("this worker keeps no logins");
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    fetch: readingMessages(fetch),
    authProvider:
      settings.auth === "oauth" && logins !== undefined ? logins.providerFor(name, url) : undefined,
    requestInit: { headers: headersFor(access, name, settings) },
    // Losing the stream of notices is harmless: a new connection checks the server's list anyway.
    reconnectionOptions: {
      initialReconnectionDelay: 1_000,
      maxReconnectionDelay: 30_000,
      reconnectionDelayGrowFactor: 2,
      maxRetries: 2,
    },
  });
  const options = { timeout: startTimeout, signal };
  const client = await connected(createProtocolClient("auto", startTimeout), transport, options);
  hearChanges(client);
  return client;
}

/** Starts the operator's program of that name. Programs that exit at an unknown request get the older handshake. */
async function connectProgram(
  { name, settings }: ServerOf,
  access: McpAccess,
  signal: AbortSignal,
): Promise<Client> {
  const program = access.programs?.[name];
  if (program === undefined)
    throw new McpFailure(
      "this worker's policy file (LONGHAUL_POLICY) names no program for it under mcpServers",
    );
  const timeout = settings.startTimeout;
  const greet = async (mode: "auto" | "legacy") => {
    const transport = new WorkerProgram(program, access);
    try {
      return await connected(createProtocolClient(mode, timeout / 2), transport, { timeout, signal });
    } catch (error) {
      const lastOutput = transport.lastWords;
      throw new McpFailure(
        `${serverReason(error)}${lastOutput === "" ? "" : `; it last printed: ${lastOutput}`}`,
      );
    }
  };
  const client = await greet("auto").catch((error: unknown) => {
    if (signal.aborted) throw error;
    return greet("legacy");
  });
  hearChanges(client);
  return client;
}
