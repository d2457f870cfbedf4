/** Reads what the firewall's containers print: the addresses of their machine, and nft's sets of refused destinations. Pure. */
import type { Endpoint } from "./firewall-rules.ts";

/**
 * The addresses of a machine's interfaces, as its kernel lists them.
 * @param text `/proc/net/fib_trie` and `/proc/net/if_inet6`, one after the other
 * @returns each once, without loopback
 */
export function parseHostAddresses(text: string): string[] {
  const found = new Set<string>();
  let candidate = "";
  for (const line of text.split("\n")) {
    candidate = /^\s*\|--\s+([\d.]+)\s*$/.exec(line)?.[1] ?? candidate;
    if (/^\s*\/32 host LOCAL\b/.test(line) && !candidate.startsWith("127.")) found.add(candidate);
    const six = /^([0-9a-f]{32})\s.*\s(\S+)$/.exec(line);
    if (six?.[1] !== undefined && six[2] !== "lo") found.add(six[1].replaceAll(/.{4}(?!$)/g, "$&:"));
  }
  return [...found];
}

/** How long an entry is kept, as in network.nft. nft reports when it expires, in whole seconds. */
const KEPT_SECONDS = 600;
const SETS: readonly string[] = ["refused4", "refused6"];

interface Listed {
  readonly nftables?: readonly {
    readonly set?: {
      readonly name: string;
      readonly elem?: readonly {
        readonly elem?: {
          readonly val?: { readonly concat?: readonly unknown[] };
          readonly expires?: number;
        };
      }[];
    };
  }[];
}

/** @param said what `nft -j list table inet longhaul` prints */
export function refusedLately(said: string, withinMs: number): Endpoint[] {
  const { nftables = [] } = JSON.parse(said) as Listed;
  return nftables
    .flatMap(({ set }) => (set !== undefined && SETS.includes(set.name) ? (set.elem ?? []) : []))
    .flatMap(({ elem }) => {
      const [address, port] = elem?.val?.concat ?? [];
      const ageMs = (KEPT_SECONDS - (elem?.expires ?? 0) - 1) * 1_000;
      return typeof address === "string" && typeof port === "number" && ageMs <= withinMs
        ? [{ address, port }]
        : [];
    });
}
