/** Connections to servers that are reached over HTTP: one for each session and server, while it is used. */
import { StreamableHTTPClientTransport, type Client } from "@modelcontextprotocol/client";
import type { McpServer } from "../config/mcp-settings.ts";
import { createOutgoing, type Outgoing } from "../network/outgoing-fetch.ts";
import { headersFor, type McpAccess } from "./access.ts";
import type { Logins } from "./logins.ts";
import { McpFailure } from "./mcp-failure.ts";
import { connected, createProtocolClient, hearChanges } from "./protocol-client.ts";

/** Source: Temporal's own plug-in for MCP. */
const IDLE_MS = 5 * 60_000;

interface HttpServer {
  readonly sessionId: string;
  readonly name: string;
  readonly settings: McpServer;
}

export interface HttpServers {
  /**
   * The open connection, or a new one. A session has its own: a server of the older revisions keeps state for each.
   * @param instead a connection that the server has forgotten
   */
  client(server: HttpServer, signal: AbortSignal, instead?: Client): Promise<Client>;
  close(): Promise<void>;
}

interface Entry {
  readonly client: Promise<Client>;
  timer: NodeJS.Timeout | undefined;
}

export function createHttpServers(access: McpAccess, logins: Logins | undefined): HttpServers {
  const entries = new Map<string, Entry>();
  const network = createOutgoing();

  function drop(key: string, entry: Entry): void {
    clearTimeout(entry.timer);
    if (entries.get(key) === entry) entries.delete(key);
    entry.client.then((client) => client.close()).catch(() => undefined);
  }

  function touch(key: string, entry: Entry): void {
    clearTimeout(entry.timer);
    entry.timer = setTimeout(() => drop(key, entry), IDLE_MS);
    entry.timer.unref();
  }

  return {
    async client(server, signal, instead) {
      const { sessionId, name, settings } = server;
      const key = JSON.stringify([sessionId, name, settings.url]);
      const open = entries.get(key);
      // Of two calls that find it stale, one makes the new one.
      if (open !== undefined && instead !== undefined && (await open.client) === instead) drop(key, open);
      let entry = entries.get(key);
      if (entry === undefined) {
        entry = { client: connect(server, { ...access, logins }, await network, signal), timer: undefined };
        entries.set(key, entry);
        const mine = entry;
        mine.client.catch(() => drop(key, mine));
      }
      const client = await entry.client;
      touch(key, entry);
      return client;
    },
    async close() {
      for (const [key, entry] of entries) drop(key, entry);
      await network.then(({ close }) => close());
    },
  };
}

async function connect(
  { name, settings }: HttpServer,
  access: McpAccess & { readonly logins: Logins | undefined },
  { fetch }: Outgoing,
  signal: AbortSignal,
): Promise<Client> {
  const { startTimeout, url = "" } = settings;
  const { logins } = access;
  if (settings.auth === "oauth" && logins === undefined) throw new McpFailure("this worker keeps no logins");
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    fetch,
    ...(settings.auth === "oauth" && logins !== undefined
      ? { authProvider: logins.providerFor(name, url) }
      : {}),
    requestInit: { headers: headersFor(access, name, settings) },
    // A lost stream of notices is a small loss: a new connection looks at the server's list anyway.
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
