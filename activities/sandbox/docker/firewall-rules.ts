/** Which addresses a sandbox on a network may not reach, as data, how probes of them are judged, and what the firewall's containers print. */
import { isIP } from "node:net";
import {
  containedIn,
  isSingle,
  nat64,
  type AddressPrefix,
  prefixText,
  toPrefix,
  METADATA,
  SPECIAL,
} from "../../config/addresses.ts";
import { networkTemplate } from "../agent/sources.ts";
import type { Sandbox } from "../sandbox.ts";

/** Also probed: broadcast and multicast, old and local ranges of IPv6, and other notations of 169.254.169.254. */
const MORE_PROBES = [
  "169.254.169.254",
  "fd00:ec2::254",
  "255.255.255.255",
  "224.0.0.251",
  "fc00::1",
  "fec0::1",
  "ff02::1",
  "::ffff:169.254.169.254",
  "64:ff9b::a9fe:a9fe",
  "2002:a9fe:a9fe::1",
];

/** Loopback, "this host", multicast and broadcast: never a registry's address. */
const NOWHERE = ["0.0.0.0/8", "127.0.0.0/8", "224.0.0.0/3", "::/127", "ff00::/8"];

/** A host with hundreds of containers has as many addresses. All are in the rules, but only the first ones are probed. */
const MAX_HOST_PROBES = 64;
/** The most addresses that an event names. */
const MAX_NAMED = 12;

export interface NetworkSettings {
  /** The host's own addresses, besides the gateway. */
  readonly host: readonly string[];
  /** The sandbox's own network, `address/length`: other containers are on it. */
  readonly subnets: readonly string[];
  /** Addresses or prefixes that the configuration allows nevertheless. */
  readonly allow: readonly string[];
  /** Package registries: these ports may be reached even on private addresses, but never on a metadata service. */
  readonly registries?: readonly NetworkEndpoint[];
}

export interface NetworkEndpoint {
  readonly address: string;
  readonly port: number;
}

export interface NetworkRules {
  /** Prefixes as text, IPv4 in its NAT64 form too. Evaluated in the order of network.nft. */
  readonly sets: Readonly<Record<"named" | "protected" | "allowed" | "special", readonly string[]>>;
  /** The registries that are open whatever their address is. */
  readonly registries: readonly NetworkEndpoint[];
  /** For `nft -f`. */
  readonly ruleset: string;
  /** Probed from inside the sandbox and from its namespace. */
  readonly probe: readonly string[];
  /** The part of `probe` that the configuration allows. */
  readonly open: readonly string[];
}

/** @throws RangeError for an invalid address or prefix */
export function networkRules({ host, subnets, allow, registries = [] }: NetworkSettings): NetworkRules {
  const hostPrefixes = host.map(toPrefix).filter(({ address }) => !isLoopback(address));
  const prefixes = allow.map(toPrefix);
  const sets = {
    named: prefixes.filter(isSingle),
    protected: [...METADATA.map(toPrefix), ...hostPrefixes],
    allowed: prefixes,
    special: [...SPECIAL, ...subnets].map(toPrefix),
  };
  const isNamed = containedIn(withNat64(sets.named));
  const isProtected = containedIn(withNat64(sets.protected));
  const isAllowed = containedIn(withNat64(sets.allowed));
  const probe = new Set([
    ...MORE_PROBES,
    ...[...METADATA, ...SPECIAL].map(toPrefix).map(firstAddress),
    ...hostPrefixes.slice(0, MAX_HOST_PROBES).map(({ address }) => address),
  ]);
  const reachable = registries.filter(isOutside);
  return {
    ruleset: rulesetOf(sets, reachable),
    registries: reachable,
    sets: {
      named: texts(sets.named),
      protected: texts(sets.protected),
      allowed: texts(sets.allowed),
      special: texts(sets.special),
    },
    probe: [...probe],
    open: [...probe].filter((at) => isNamed(at) || (isAllowed(at) && !isProtected(at))),
  };
}

/** Public addresses that are also probed from a sandbox that has no interface. */
const PUBLIC = ["1.1.1.1", "2606:4700:4700::1111"];

/** Addresses to probe from inside a sandbox that may reach only its proxy. */
export const closedProbe = (): string[] => [
  ...networkRules({ host: [], subnets: [], allow: [] }).probe,
  ...PUBLIC,
];

/** What a sandbox behind the proxy can reach, judged by the probes that got out of it. */
export function measuredListed(
  probe: readonly string[],
  reachable: readonly string[],
  troubles: readonly string[],
): Sandbox["network"] {
  const { reach, ...measured } = measuredReach({ probe, open: [] }, reachable, troubles);
  return { reach: reach === "internet" ? "listed" : reach, ...measured };
}

/** What a sandbox can reach, judged by the probes that got out. */
export function measuredReach(
  { probe, open }: Pick<NetworkRules, "probe" | "open">,
  reachable: readonly string[],
  troubles: readonly string[],
): Sandbox["network"] {
  const opened = new Set(open);
  const out = new Set(reachable);
  const leaks = probe.filter((address) => out.has(address) && !opened.has(address));
  const refused = probe.filter((address) => !out.has(address)).slice(0, MAX_NAMED);
  const measured = { tried: probe.length, refused, reachable: reachable.slice(0, MAX_NAMED) };
  if (leaks.length === 0 && troubles.length === 0)
    return { reach: reachable.length === 0 ? "internet" : "allowed", ...measured };
  const open_ = leaks.length === 0 ? [] : [`${leaks.slice(0, MAX_NAMED).join(", ")} can be reached`];
  return { reach: "everything", why: [...open_, ...troubles].join("; "), ...measured };
}

/** False for a metadata service and the sandbox itself, whatever name resolved to it. */
function isOutside({ address }: NetworkEndpoint): boolean {
  return !containedIn(withNat64([...METADATA, ...NOWHERE].map(toPrefix)))(address);
}

function rulesetOf(
  sets: Readonly<Record<string, readonly AddressPrefix[]>>,
  registries: readonly NetworkEndpoint[],
): string {
  const template = networkTemplate.replaceAll(/\{\{registries([46])\}\}/g, (_, version: string) => {
    const elements = registries.filter(({ address }) => isIP(address) === Number(version));
    return elements.length === 0
      ? ""
      : `elements = { ${elements.map(({ address, port }) => `${address} . ${port}`).join(", ")} }`;
  });
  return template.replaceAll(/\{\{([a-z]+)([46])\}\}/g, (_, name: string, version: string) => {
    const elements = withNat64(sets[name] ?? []).filter((prefix) => prefix.version === Number(version));
    return elements.length === 0 ? "" : `elements = { ${elements.map(prefixText).join(", ")} }`;
  });
}

const texts = (prefixes: readonly AddressPrefix[]): string[] => withNat64(prefixes).map(prefixText);

const withNat64 = (prefixes: readonly AddressPrefix[]): AddressPrefix[] =>
  prefixes.flatMap((prefix) => [prefix, ...nat64(prefix)]);

function firstAddress(prefix: AddressPrefix): string {
  if (isSingle(prefix)) return prefix.address;
  return prefix.version === 4 ? prefix.address.replace(/\.0$/, ".1") : prefix.address.replace(/::$/, "::1");
}

const isLoopback = (address: string): boolean => address.startsWith("127.") || address === "::1";

/**
 * The addresses of a machine's interfaces, as its kernel lists them.
 * @param text `/proc/net/fib_trie` and `/proc/net/if_inet6`, one after the other
 * @returns each once, without loopback
 */
export function parseHostAddresses(text: string): string[] {
  const addresses = new Set<string>();
  let candidate = "";
  for (const line of text.split("\n")) {
    candidate = /^\s*\|--\s+([\d.]+)\s*$/.exec(line)?.[1] ?? candidate;
    if (/^\s*\/32 host LOCAL\b/.test(line) && !candidate.startsWith("127.")) addresses.add(candidate);
    const six = /^([0-9a-f]{32})\s.*\s(\S+)$/.exec(line);
    if (six?.[1] !== undefined && six[2] !== "lo") addresses.add(six[1].replaceAll(/.{4}(?!$)/g, "$&:"));
  }
  return [...addresses];
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

/** @param output what `nft -j list table inet longhaul` prints */
export function refusedLately(output: string, withinMs: number): NetworkEndpoint[] {
  const { nftables = [] } = JSON.parse(output) as Listed;
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
