/** Which addresses a sandbox on a network may not reach, as data, and how probes of them are judged. Pure. */
import { networkTemplate } from "../agent/sources.ts";
import { METADATA, SPECIAL } from "../../config/special-addresses.ts";
import { containedIn, isSingle, nat64, type Prefix, prefixText, toPrefix } from "../../config/ip-prefix.ts";
import { isIP } from "node:net";
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

/** Loopback, "this host", multicast and broadcast: no registry is there. */
const NOWHERE = ["0.0.0.0/8", "127.0.0.0/8", "224.0.0.0/3", "::/127", "ff00::/8"];

/** A host with hundreds of containers has as many addresses. All are in the rules, the first of them are probed. */
const MAX_HOST_PROBES = 64;
/** Addresses named in an event. */
const MAX_NAMED = 12;

export interface NetworkSettings {
  /** The host's own addresses, besides the gateway. */
  readonly host: readonly string[];
  /** The sandbox's own network, `address/length`: other containers are on it. */
  readonly subnets: readonly string[];
  /** Addresses or prefixes that may be reached nevertheless, from the configuration. */
  readonly allow: readonly string[];
  /** Addresses of package registries with their ports: those ports may be reached whatever the address, but no metadata service. */
  readonly registries?: readonly Endpoint[];
}

export interface Endpoint {
  readonly address: string;
  readonly port: number;
}

export interface NetworkRules {
  /** Prefixes as text, IPv4 in its NAT64 form too. Decided in the order of network.nft. */
  readonly sets: Readonly<Record<"named" | "protected" | "allowed" | "special", readonly string[]>>;
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
  const wanted = allow.map(toPrefix);
  const sets = {
    named: wanted.filter(isSingle),
    protected: [...METADATA.map(toPrefix), ...hostPrefixes],
    allowed: wanted,
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
  return {
    ruleset: rulesetOf(sets, registries.filter(isOutside)),
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

/** Also tried from a sandbox that has no interface: addresses of the public internet, whoever owns them. */
const PUBLIC = ["1.1.1.1", "2606:4700:4700::1111"];

/** What is tried from inside a sandbox that may reach only its proxy. */
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

/** Neither a metadata service nor the sandbox itself, whatever a name was resolved to. */
function isOutside({ address }: Endpoint): boolean {
  return !containedIn(withNat64([...METADATA, ...NOWHERE].map(toPrefix)))(address);
}

function rulesetOf(
  sets: Readonly<Record<string, readonly Prefix[]>>,
  registries: readonly Endpoint[],
): string {
  const template = networkTemplate.replaceAll(/\{\{registries([46])\}\}/g, (_, version: string) => {
    const elements = registries.filter(({ address }) => isIP(address) === Number(version));
    return elements.length === 0
      ? ""
      : `elements = { ${elements.map(({ address, port }) => `${address} . ${port}`).join(", ")} }`;
  });
  return template.replaceAll(/\{\{([a-z]+)([46])\}\}/g, (_, name: string, version: string) => {
    const elements = withNat64(sets[name] ?? []).filter((each) => each.version === Number(version));
    return elements.length === 0 ? "" : `elements = { ${elements.map(prefixText).join(", ")} }`;
  });
}

const texts = (prefixes: readonly Prefix[]): string[] => withNat64(prefixes).map(prefixText);

const withNat64 = (prefixes: readonly Prefix[]): Prefix[] =>
  prefixes.flatMap((each) => [each, ...nat64(each)]);

function firstAddress(prefix: Prefix): string {
  if (isSingle(prefix)) return prefix.address;
  return prefix.version === 4 ? prefix.address.replace(/\.0$/, ".1") : prefix.address.replace(/::$/, "::1");
}

const isLoopback = (address: string): boolean => address.startsWith("127.") || address === "::1";
