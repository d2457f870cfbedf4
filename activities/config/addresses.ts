/** IP addresses and prefixes: parsed, normalised, compared; and which are outside the public internet. */
import { BlockList, isIP } from "node:net";

export interface AddressPrefix {
  /** The address in canonical form, with the bits after `length` zero. */
  readonly address: string;
  readonly length: number;
  readonly version: 4 | 6;
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

/** @throws RangeError for text that is neither an address nor a prefix */
export function toPrefix(text: string): AddressPrefix {
  const [address = "", length, ...more] = text.split("/");
  const kind = isIP(address);
  const bits = kind === 4 ? 32 : 128;
  const writtenBits = /^\d{1,3}$/.test(length ?? "") ? Number(length) : Number.NaN;
  const count = length === undefined ? bits : writtenBits;
  if (kind === 0 || address.includes("%") || more.length > 0 || !(count <= bits)) {
    throw new RangeError(`${JSON.stringify(text)} is neither an IP address nor a prefix such as 10.1.0.0/16`);
  }
  return kind === 4
    ? { address: masked4(address, count), length: count, version: 4 }
    : { address: masked6(address, count), length: count, version: 6 };
}

export const prefixText = ({ address, length }: AddressPrefix): string => `${address}/${length}`;

export const isSingle = ({ length, version }: AddressPrefix): boolean =>
  length === (version === 4 ? 32 : 128);

/** Whether an address is in one of the prefixes. */
export function containedIn(prefixes: readonly AddressPrefix[]): (address: string) => boolean {
  const list = new BlockList();
  for (const { address, length, version } of prefixes) list.addSubnet(address, length, `ipv${version}`);
  return (address) => list.check(address, isIP(address) === 4 ? "ipv4" : "ipv6");
}

/** An IPv4 prefix as NAT64 writes it in IPv6 (RFC 6052, the well-known prefix); nothing for an IPv6 prefix. */
export function nat64(prefix: AddressPrefix): AddressPrefix[] {
  return prefix.version === 4 ? [toPrefix(`64:ff9b::${prefix.address}/${96 + prefix.length}`)] : [];
}

/**
 * The IPv4 address that an IPv6 address leads to: an IPv4-mapped one (RFC 4291), or one of NAT64's well-known prefix.
 * @returns undefined for any other
 */
export function embedded4(address: string): string | undefined {
  if (isIP(address) !== 6 || address.includes("%")) return undefined;
  const groups = expand(canonical6(address));
  const [high = 0, low = 0] = groups.slice(6);
  const head = groups.slice(0, 6).map((group) => group.toString(16));
  if (!["0:0:0:0:0:ffff", "64:ff9b:0:0:0:0"].includes(head.join(":"))) return undefined;
  return [high >> 8, high & 0xff, low >> 8, low & 0xff].join(".");
}

const masked4 = (address: string, length: number): string =>
  masked(address.split(".").map(Number), 8, length).join(".");

/** The URL parser writes an address in its one canonical form. */
const canonical6 = (address: string): string => new URL(`http://[${address}]`).hostname.slice(1, -1);

function masked6(address: string, length: number): string {
  const groups = masked(expand(canonical6(address)), 16, length);
  return canonical6(groups.map((group) => group.toString(16)).join(":"));
}

/** @param bits per group */
function masked(groups: readonly number[], bits: number, length: number): number[] {
  return groups.map((group, at) => {
    const keptBits = Math.min(bits, Math.max(0, length - at * bits));
    return group - (group % 2 ** (bits - keptBits));
  });
}

function expand(address: string): number[] {
  const [left = "", right] = address.split("::");
  const parts = (text: string): string[] => (text === "" ? [] : text.split(":"));
  const head = parts(left);
  const tail = right === undefined ? [] : parts(right);
  const middle = right === undefined ? [] : Array<string>(8 - head.length - tail.length).fill("0");
  return [...head, ...middle, ...tail].map((group) => Number.parseInt(group, 16));
}

/** Where clouds serve credentials and platform services: the link-local ranges, and addresses elsewhere. */
export const METADATA = [
  "169.254.0.0/16",
  // Azure's platform, Alibaba's and Oracle's metadata services.
  "168.63.129.16",
  "100.100.100.200",
  "192.0.0.192",
  "fe80::/10",
  // Amazon's and Google's over IPv6.
  "fd00:ec2::/32",
  "fd20:ce::254",
];

/**
 * Ranges outside the public internet: the registries of special-purpose addresses (RFC 6890), and the ranges that
 * IBM's cloud reserves for its own services. For IPv6, only ranges within 2000::/3: network.nft refuses all others.
 */
export const SPECIAL = [
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "161.26.0.0/16",
  "166.8.0.0/14",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/4",
  "240.0.0.0/4",
  "2001::/23",
  "2001:db8::/32",
  "2002::/16",
  "3fff::/20",
  // Loopback through NAT64.
  "64:ff9b::7f00:0/104",
];

const isKnown = containedIn([...METADATA, ...SPECIAL, "127.0.0.0/8"].map(toPrefix));
const isUnicast = containedIn([toPrefix("2000::/3")]);

/** Whether a literal address is on the public internet. */
export function isPublicAddress(address: string): boolean {
  const family = isIP(address);
  return (family === 4 || (family === 6 && isUnicast(address))) && !isKnown(address);
}
