/**
 * The worker's own way out: to models' providers and MCP servers. undici's fetch, for what Node's does not let us set: no time
 * limits but ours, and the proxy that HTTP_PROXY, HTTPS_PROXY and NO_PROXY name. Certificates of NODE_EXTRA_CA_CERTS are
 * Node's own matter.
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

/** Of this machine: no proxy is between, and it may read its whole input before it sends a header. */
export function isLoopback(url: string): boolean {
  const host = URL.canParse(url) ? new URL(url).hostname : "";
  return host === "localhost" || host.endsWith(".localhost") || host === "[::1]" || host.startsWith("127.");
}
