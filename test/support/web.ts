/** Web servers of a test on this machine, each under a public-looking address that only the test's own network leads to it. */
import { createServer, type RequestListener, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { defaultLimits } from "../../activities/config/run-policy.ts";
import { fetchPage, type WebNetwork } from "../../activities/web/fetch-page.ts";
import type { WebRules } from "../../activities/web/web-rules.ts";

/** Of the ranges that are public and that nothing here is in. */
export const PUBLIC_ADDRESS = "93.184.215.14";

export interface FakeWeb {
  readonly network: WebNetwork;
  /** Names that were looked up, and addresses that were connected to, in order. */
  readonly lookedUp: string[];
  readonly dialled: string[];
  /** What a name resolves to, at each look-up the next; the last one stays. Default: a public address. */
  readonly names: Map<string, (readonly string[])[]>;
  close(): Promise<void>;
}

interface Served {
  /** Answers on port 80. */
  readonly http: RequestListener;
  /** Answers on port 443. */
  readonly https?: { readonly listener: RequestListener; readonly key: string; readonly cert: string };
}

export async function startWeb({ http, https }: Served): Promise<FakeWeb> {
  const servers = new Map<number, Server>([[80, createServer(http)]]);
  if (https !== undefined) servers.set(443, createTlsServer(https, https.listener));
  for (const server of servers.values())
    await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const [lookedUp, dialled]: [string[], string[]] = [[], []];
  const names = new Map<string, (readonly string[])[]>();
  return {
    lookedUp,
    dialled,
    names,
    network: {
      lookUp: async (name) => {
        lookedUp.push(name);
        const answers = names.get(name) ?? [[PUBLIC_ADDRESS]];
        return (answers.length > 1 ? answers.shift() : answers[0]) ?? [];
      },
      ownAddresses: () => ["192.0.2.200", "198.51.99.7"],
      proxyFor: () => undefined,
      dial: (address, port) => {
        dialled.push(`${address}:${port}`);
        const place = servers.get(port)?.address() as AddressInfo | undefined;
        return `127.0.0.1:${place?.port ?? 9}`;
      },
    },
    async close() {
      for (const server of servers.values()) {
        server.closeAllConnections();
        await new Promise((resolve) => void server.close(resolve));
      }
    },
  };
}

export const BRIDGE: WebRules = { network: "bridge", names: [], allow: [] };

/** What a session with these rules is given, as `web_fetch` asks for it. */
export const webCallsOf = ({ network }: FakeWeb, rules: WebRules = BRIDGE) => ({
  readPage: (url: string, { signal }: { readonly signal: AbortSignal }, timeoutMs = 20_000) =>
    fetchPage(network, { url, rules, timeoutMs }, signal),
  limits: defaultLimits("web_fetch"),
});
