/**
 * How the worker reaches models' providers and MCP servers: undici's fetch, because Node's does not let us remove its time limits or
 * set the proxy that HTTP_PROXY, HTTPS_PROXY and NO_PROXY name. Node itself reads the certificates of NODE_EXTRA_CA_CERTS.
 */
import { loadPart } from "./load-part.ts";

export type Fetch = typeof globalThis.fetch;

export interface Outgoing {
  readonly fetch: Fetch;
  readonly close: () => Promise<void>;
}

/** Reads the environment's proxies once. Its idle connections keep no process alive. */
export async function createOutgoing(): Promise<Outgoing> {
  const { Agent, EnvHttpProxyAgent, fetch } = await loadPart(import("undici"));
  const limits = { headersTimeout: 0, bodyTimeout: 0, connectTimeout: 0 };
  const [direct, proxied] = [new Agent(limits), new EnvHttpProxyAgent(limits)];
  // The same interface as Node's own, whose types are those of an older undici.
  const send = fetch as unknown as (url: string, init: object) => Promise<Response>;
  return {
    fetch: (input, init) => {
      const url = input instanceof Request ? input.url : String(input);
      return send(url, { ...init, dispatcher: isLoopback(url) ? direct : proxied });
    },
    close: async () => void (await Promise.all([direct.destroy(), proxied.destroy()])),
  };
}

/** Whether a URL is on this machine: no proxy is used, and its server may read the whole input before it sends a header. */
export function isLoopback(url: string): boolean {
  const host = URL.canParse(url) ? new URL(url).hostname : "";
  return host === "localhost" || host.endsWith(".localhost") || host === "[::1]" || host.startsWith("127.");
}
