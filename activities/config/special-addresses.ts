/** Addresses outside the public internet, as data. Pure. */
import { isIP } from "node:net";
import { containedIn, toPrefix } from "./ip-prefix.ts";

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
