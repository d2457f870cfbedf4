/** The worker's connections to servers, over HTTP or to its own programs: one per session and server, while in use. */
import { StreamableHTTPClientTransport, type Client } from "@modelcontextprotocol/client";
import { boundedFetch } from "./bounded-fetch.ts";
import { createOutgoing, type Outgoing } from "../process/outgoing-fetch.ts";
import { headersFor, type McpAccess } from "./access.ts";
import type { Logins } from "./logins.ts";
import type { ServerOf } from "./mcp.ts";
import { McpFailure, reasonOf } from "./mcp-failure.ts";
import { connected, createProtocolClient, hearChanges } from "./protocol-client.ts";
import { WorkerProgram } from "./worker-program.ts";

/** Source: Temporal's own plug-in for MCP. */
const IDLE_MS = 5 * 60_000;

export interface Connections {
  /**
   * The open connection, or a new one. Sessions share none: a server of the older revisions keeps state per connection.
   * @param instead a connection that the server has forgotten
   */
  client(server: ServerOf, signal: AbortSignal, instead?: Client): Promise<Client>;
  /** Whether a connection is open. */
  has(server: ServerOf): boolean;
  close(): Promise<void>;
}

interface Entry {
  readonly client: Promise<Client>;
  timer: NodeJS.Timeout | undefined;
}

export function createConnections(access: McpAccess, logins: Logins | undefined): Connections {
  const entries = new Map<string, Entry>();
  const network = createOutgoing();

  function drop(key: string, entry: Entry): Promise<void> {
    clearTimeout(entry.timer);
    if (entries.get(key) === entry) entries.delete(key);
    return entry.client.then((client) => client.close()).catch(() => undefined);
  }

  function touch(key: string, entry: Entry): void {
    clearTimeout(entry.timer);
    entry.timer = setTimeout(() => void drop(key, entry), IDLE_MS);
    entry.timer.unref();
  }

  return {
    async client(server, signal, instead) {
      const key = keyOf(server);
      const open = entries.get(key);
      // If two calls find the connection stale, only the first opens a new one.
      if (open !== undefined && instead !== undefined && (await open.client) === instead)
        void drop(key, open);
      let entry = entries.get(key);
      if (entry === undefined) {
        entry = { client: connect(server, { ...access, logins }, await network, signal), timer: undefined };
        entries.set(key, entry);
        const mine = entry;
        mine.client.then((made) => (made.onclose = () => void drop(key, mine))).catch(() => drop(key, mine));
      }
      const client = await entry.client;
      touch(key, entry);
      return client;
    },
    has: (server) => entries.has(keyOf(server)),
    async close() {
      await Promise.all([...entries].map(([key, entry]) => drop(key, entry)));
      await network.then(({ close }) => close());
    },
  };
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
    fetch: boundedFetch(fetch),
    ...(settings.auth === "oauth" && logins !== undefined
      ? { authProvider: logins.providerFor(name, url) }
      : {}),
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
      const words = transport.lastWords;
      throw new McpFailure(`${reasonOf(error)}${words === "" ? "" : `; it last printed: ${words}`}`);
    }
  };
  const client = await greet("auto").catch((error: unknown) => {
    if (signal.aborted) throw error;
    return greet("legacy");
  });
  hearChanges(client);
  return client;
}
