/**
 * Where a session's requests from the worker may go: by its own network rules, as its sandbox's. Decides only, in the order of the
 * egress proxy's `decision.py`.
 */
import { isIP } from "node:net";
import {
  containedIn,
  embedded4,
  isSingle,
  METADATA,
  SPECIAL,
  toPrefix,
  type AddressPrefix,
} from "../config/addresses.ts";
import type { NETWORKS } from "../config/sandbox-settings.ts";

export interface WebRules {
  readonly network: (typeof NETWORKS)[number];
  /** With `listed`: names and `*.name`, in lower case. */
  readonly names: readonly string[];
  /** Private addresses and prefixes that the configuration opens. */
  readonly allow: readonly string[];
}

export interface WebRefusal {
  readonly ok: false;
  /** For the model: what happened, and what to do. */
  readonly text: string;
  /** What the list lacks: a person could allow it. */
  readonly unlisted?: { readonly host: string; readonly port: number };
}

const refusal = (text: string): WebRefusal => ({ ok: false, text });

/** @param from the address that redirects here */
export function readAddress(text: string, from?: URL): WebRefusal | { readonly ok: true; readonly url: URL } {
  if (!URL.canParse(text, from?.href))
    return refusal(`${JSON.stringify(text)} is no address. Expected one such as https://example.com/page.`);
  const url = new URL(text, from);
  if (url.protocol !== "http:" && url.protocol !== "https:")
    return refusal(`${url.protocol} addresses are not fetched, only http and https.`);
  if (url.username !== "" || url.password !== "")
    return refusal("The address has a user name or a password: nothing was sent. Use one without.");
  if (from?.protocol === "https:" && url.protocol === "http:")
    return refusal(`${from.host} redirects from https to http, to ${url.host}: that was not followed.`);
  url.hash = "";
  return { ok: true, url };
}

/** The port of a request, the scheme's own if the address has none. */
export const toPort = ({ port, protocol }: URL): number => Number(port) || (protocol === "https:" ? 443 : 80);

/** An address's host in the form that lists have: without brackets and a final dot. */
export const toHost = ({ hostname }: URL): string => hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "");

/** Before the look-up. @returns undefined if the host may be asked for */
export function refusedHost(url: URL, { network, names, allow }: WebRules): WebRefusal | undefined {
  if (network === "none")
    return refusal(
      "This session has no network (sandbox.network: none): nothing was fetched. Work with what is in the workspace.",
    );
  if (network === "bridge") return undefined;
  const host = toHost(url);
  const isOpened = isIP(host) !== 0 && containedIn(allow.map(toPrefix))(host);
  const isListed = names.some((name) =>
    name.startsWith("*.") ? host.endsWith(name.slice(1)) : host === name,
  );
  if (isOpened || isListed) return undefined;
  return {
    ok: false,
    text: `${host} is not among the names that this session may ask for (sandbox.network: listed): nothing was fetched.`,
    unlisted: { host, port: toPort(url) },
  };
}

/**
 * After the look-up. One forbidden address refuses the name: its owner chooses which one is tried first.
 * @param own addresses of this machine
 */
export function refusedAddress(
  host: string,
  addresses: readonly string[],
  { allow }: WebRules,
  own: readonly string[],
): WebRefusal | undefined {
  if (addresses.length === 0) return refusal(`${host} has no address.`);
  const isOpen = openAddresses(allow.map(toPrefix), own);
  const closed = addresses.find((address) => !isOpen(address));
  if (closed === undefined) return undefined;
  const leads = host === closed ? "is" : `resolves to ${closed}, which is`;
  return refusal(`${host} ${leads} not on the public internet: nothing was fetched.`);
}

const PUBLIC6 = containedIn([toPrefix("2000::/3")]);
const LOOPBACK = containedIn(["127.0.0.0/8", "::1/128"].map(toPrefix));
const PROTECTED = METADATA.map(toPrefix);
const OUTSIDE = containedIn(SPECIAL.map(toPrefix));

function openAddresses(
  allow: readonly AddressPrefix[],
  own: readonly string[],
): (address: string) => boolean {
  const isNamed = containedIn(allow.filter(isSingle));
  const isAllowed = containedIn(allow);
  const isProtected = containedIn([...PROTECTED, ...own.filter((at) => !at.includes("%")).map(toPrefix)]);
  return (rawAddress) => {
    const address = embedded4(rawAddress) ?? rawAddress;
    const family = isIP(address);
    if (family === 0 || address.includes("%") || LOOPBACK(address)) return false;
    if (isNamed(address)) return true;
    if (isProtected(address)) return false;
    if (isAllowed(address)) return true;
    return !OUTSIDE(address) && (family === 4 || PUBLIC6(address));
  };
}
