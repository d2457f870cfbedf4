/** Reads nft's sets of refused destinations. Pure. */
import type { Endpoint } from "./firewall-rules.ts";

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
