/** Addresses of the package registries that a sandbox may reach by name. */
import { lookup } from "node:dns/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { cachedFor } from "./cached-for.ts";
import type { Endpoint } from "./firewall-rules.ts";

/** How long a name's address is usually valid. */
const CACHED_MS = 60_000;
/** A sandbox waits no longer than this for look-ups; a name that does not resolve cannot be reached from it either. */
const TIMEOUT_MS = 2_000;

/** @returns a function from `host:port` to addresses; names that have none now are left out. It never rejects. */
export function createResolver(): (hosts: readonly string[]) => Promise<Endpoint[]> {
  const known = new Map<string, () => Promise<Endpoint[]>>();
  const resolve = (host: string): Promise<Endpoint[]> => {
    const ask = known.get(host) ?? cachedFor(CACHED_MS, () => addressesOf(host));
    known.set(host, ask);
    return ask().catch(() => []);
  };
  return async (hosts) => {
    const done = new AbortController();
    const late = sleep(TIMEOUT_MS, [], { signal: done.signal });
    late.catch(() => undefined);
    try {
      const found = await Promise.all(hosts.map((host) => Promise.race([resolve(host), late])));
      const unique = new Map(
        found.flat().map((endpoint) => [`${endpoint.address} ${endpoint.port}`, endpoint]),
      );
      return [...unique.values()];
    } finally {
      done.abort();
    }
  };
}

async function addressesOf(host: string): Promise<Endpoint[]> {
  const { hostname, port } = new URL(`http://${host}`);
  const found = await lookup(hostname.replace(/^\[(.*)\]$/, "$1"), { all: true });
  // The URL parser drops the default port of `http`.
  return found.map(({ address }) => ({ address, port: Number(port || "80") }));
}
