/** Which addresses a box on a network may not reach, as data. Pure. */
import { BlockList, isIP } from "node:net";

/**
 * Not of the public internet: the host's gateway, its neighbours, a cloud's metadata service. Source: the registries of
 * special-purpose addresses (RFC 6890), and NAT64's spellings of the IPv4 ones.
 */
const SPECIAL = [
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.168.0.0/16",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/4",
  "240.0.0.0/4",
  "fc00::/7",
  "fe80::/10",
  "ff00::/8",
  "64:ff9b::a00:0/104",
  "64:ff9b::6440:0/106",
  "64:ff9b::7f00:0/104",
  "64:ff9b::a9fe:0/112",
  "64:ff9b::ac10:0/108",
  "64:ff9b::c0a8:0/112",
  "64:ff9b:1::/48",
];

/** Stand for all that is blocked when the kernel is asked what it lets through; the last ones go to the whole segment. */
const TELLING = [
  "10.0.0.1",
  "100.64.0.1",
  "169.254.169.254",
  "172.16.0.1",
  "192.168.0.1",
  "fd00:ec2::254",
  "64:ff9b::a9fe:a9fe",
  "255.255.255.255",
  "224.0.0.251",
];

export interface BoxNetwork {
  /** The host's own addresses: reached as well as the gateway. */
  readonly host: readonly string[];
  /** The box's own network, `address/length`: other containers are there, whatever its addresses. */
  readonly subnets: readonly string[];
  /** What may be reached nevertheless: addresses or prefixes, from the configuration. */
  readonly allow: readonly string[];
}

export interface NetworkRules {
  /** Prefixes, as `address/length` with the host's bits zero. */
  readonly block: readonly string[];
  readonly allow: readonly string[];
  /** Addresses that must not be reachable: asked inside the box, to see whether the rules are in force. */
  readonly probe: readonly string[];
}

/** @throws RangeError for what is no address or prefix */
export function networkRules({ host, subnets, allow }: BoxNetwork): NetworkRules {
  const allowed = allow.map(toPrefix);
  const isAllowed = listOf(allowed);
  const own = [...host, ...subnets].map(toPrefix).filter(({ address }) => !isLoopback(address));
  const probe = [...TELLING, ...host.filter((address) => !isLoopback(address))].filter(
    (address) => !isAllowed(address),
  );
  const text = ({ address, length }: Prefix): string => `${address}/${length}`;
  return {
    block: [...new Set([...SPECIAL, ...own.map(text)])],
    allow: allowed.map(text),
    probe: [...new Set(probe)],
  };
}

interface Prefix {
  readonly address: string;
  readonly length: number;
}

/** Whether it is an IP address, or a prefix such as `10.1.0.0/16`. */
export function isPrefix(text: string): boolean {
  try {
    toPrefix(text);
    return true;
  } catch {
    return false;
  }
}

function toPrefix(text: string): Prefix {
  const [address = "", length, ...more] = text.split("/");
  const kind = isIP(address);
  const bits = kind === 4 ? 32 : 128;
  const count = length === undefined ? bits : /^\d{1,3}$/.test(length) ? Number(length) : Number.NaN;
  if (kind === 0 || address.includes("%") || more.length > 0 || !(count <= bits)) {
    throw new RangeError(`${JSON.stringify(text)} is no IP address and no prefix such as 10.1.0.0/16`);
  }
  return { address: masked(address, kind, count), length: count };
}

/** The address with the bits behind the prefix's length zero: the kernel refuses others. */
function masked(address: string, kind: number, length: number): string {
  if (kind === 4) {
    const number = address.split(".").reduce((sum, part) => sum * 256 + Number(part), 0);
    const kept = length === 0 ? 0 : number - (number % 2 ** (32 - length));
    return [24, 16, 8, 0].map((shift) => Math.floor(kept / 2 ** shift) % 256).join(".");
  }
  // The URL parser writes an address in its one canonical form.
  const groups = expand(new URL(`http://[${address}]`).hostname.slice(1, -1));
  const kept = groups.map((group, at) => {
    const bits = Math.min(16, Math.max(0, length - at * 16));
    return group - (group % 2 ** (16 - bits));
  });
  return new URL(`http://[${kept.map((group) => group.toString(16)).join(":")}]`).hostname.slice(1, -1);
}

function expand(address: string): number[] {
  const [left = "", right] = address.split("::");
  const parts = (text: string): string[] => (text === "" ? [] : text.split(":"));
  const head = parts(left);
  const tail = right === undefined ? [] : parts(right);
  const middle = right === undefined ? [] : Array<string>(8 - head.length - tail.length).fill("0");
  return [...head, ...middle, ...tail].map((group) => Number.parseInt(group, 16));
}

function listOf(prefixes: readonly Prefix[]): (address: string) => boolean {
  const list = new BlockList();
  for (const { address, length } of prefixes) list.addSubnet(address, length, family(address));
  return (address) => list.check(address, family(address));
}

const family = (address: string): "ipv4" | "ipv6" => (isIP(address) === 4 ? "ipv4" : "ipv6");

const isLoopback = (address: string): boolean => address.startsWith("127.") || address === "::1";
