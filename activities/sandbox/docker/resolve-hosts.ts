/** Addresses of the package registries that a sandbox may reach by name. */
import { lookup } from "node:dns/promises";
import type { Endpoint } from "./firewall-rules.ts";

/** As long as a name's address usually holds. */
const KEPT_MS = 60_000;
/** A sandbox does not wait for names longer than this; one without an answer cannot be reached from it either. */
const TIMEOUT_MS = 2_000;

/** @returns a function from `host:port` to addresses; names that have none now are left out. It never rejects. */
export function createResolver(): (hosts: readonly string[]) => Promise<Endpoint[]> {
  const known = new Map<string, { readonly found: Promise<Endpoint[]>; readonly atMs: number }>();

  function resolveOne(host: string): Promise<Endpoint[]> {
    const before = known.get(host);
    if (before !== undefined && performance.now() - before.atMs < KEPT_MS) return before.found;
    const { hostname, port } = new URL(`http://${host}`);
    // `http` hides its own port.
    const number = Number(port || "80");
    const found = lookup(hostname.replace(/^\[(.*)\]$/, "$1"), { all: true }).then(
      (all) => all.map(({ address }) => ({ address, port: number })),
      () => {
        known.delete(host);
        return [];
      },
    );
    known.set(host, { found, atMs: performance.now() });
    return found;
  }

  return async (hosts) => {
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), TIMEOUT_MS);
    const nothing = new Promise<Endpoint[]>((resolve) =>
      late.signal.addEventListener("abort", () => resolve([]), { once: true }),
    );
    try {
      const found = await Promise.all(hosts.map((host) => Promise.race([resolveOne(host), nothing])));
      const unique = new Map(found.flat().map((each) => [`${each.address} ${each.port}`, each]));
      return [...unique.values()];
    } finally {
      clearTimeout(timer);
    }
  };
}
