/**
 * Fetches one address of the web for a session: each name is looked up once, all its addresses are checked, and the connection goes
 * to a checked one, again after each redirect. No cookies, no credentials.
 */
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { networkInterfaces } from "node:os";
import type { Readable } from "node:stream";
import type { Dispatcher } from "undici";
import { innermostReason } from "../contract/errors.ts";
import { trustAuthorities } from "../process/authorities.ts";
import { boundedBody } from "../process/bounded-body.ts";
import { loadPart } from "../process/load-part.ts";
import { proxyFor, readProxies } from "../process/proxies.ts";
import { abortable } from "../sandbox/shared-work.ts";
import {
  toHost,
  toPort,
  readAddress,
  refusedAddress,
  refusedHost,
  type WebRefusal,
  type WebRules,
} from "./web-rules.ts";

/** What the surroundings are asked for. */
export interface WebNetwork {
  /** All addresses of a name. */
  readonly lookUp: (name: string) => Promise<readonly string[]>;
  /** Of this machine: other programs listen on them. */
  readonly ownAddresses: () => readonly string[];
  /** URL of the operator's proxy for an address; undefined: directly. */
  readonly proxyFor: (url: URL) => string | undefined;
  /** Where a connection to a checked address goes, `host:port`; default: there. */
  readonly dial?: (address: string, port: number) => string;
}

export interface FetchedPage {
  readonly ok: true;
  /** After redirects. */
  readonly url: URL;
  readonly status: number;
  readonly statusText: string;
  readonly contentType: string;
  /** Without compression. */
  readonly bytes: Buffer;
}

interface PageRequest {
  readonly url: string;
  readonly rules: WebRules;
  /** For everything, redirects too. */
  readonly timeoutMs: number;
}

/** Chosen: sites use one or two; browsers stop at twenty. */
const MAX_REDIRECTS = 5;
/** Of a body, without its compression. Chosen: larger ones are files to download, not pages to read. */
const MAX_BYTES = 5 << 20;
/** A server compresses once; each further time multiplies what it costs to undo it. */
const MAX_ENCODINGS = 1;
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
const HEADERS = {
  accept: "text/html, application/xhtml+xml, text/markdown, text/plain, application/json, */*;q=0.5",
  "accept-encoding": "gzip, deflate, br",
  "user-agent": "Longhaul (web_fetch)",
};

/** The machine's own network. @throws ProxyUnusable, AuthoritiesUnusable */
export function machineNetwork(): WebNetwork {
  trustAuthorities();
  const proxies = readProxies();
  return {
    lookUp: async (name) => (await lookup(name, { all: true })).map(({ address }) => address),
    ownAddresses: () =>
      Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map(({ address }) => address)),
    proxyFor: (url) => proxyFor(url, proxies),
  };
}

/**
 * Expected failures are refusals with words for the model.
 * @throws the signal's reason if it is aborted
 */
export async function fetchPage(
  network: WebNetwork,
  request: PageRequest,
  signal: AbortSignal,
): Promise<FetchedPage | WebRefusal> {
  const deadline = AbortSignal.timeout(request.timeoutMs);
  let currentUrl: URL | undefined;
  try {
    return await follow(network, request, AbortSignal.any([signal, deadline]), (url) => (currentUrl = url));
  } catch (error) {
    signal.throwIfAborted();
    const host = currentUrl?.host ?? "The server";
    const text = deadline.aborted
      ? `${host} did not answer completely within ${request.timeoutMs / 1_000} s. Nothing was kept. Try another address, or later.`
      : `${host} could not be read: ${innermostReason(error)}.`;
    return { ok: false, text };
  }
}

async function follow(
  network: WebNetwork,
  { url: text, rules }: PageRequest,
  signal: AbortSignal,
  asking: (url: URL) => void,
): Promise<FetchedPage | WebRefusal> {
  let read = readAddress(text);
  for (let redirects = 0; ; redirects += 1) {
    if (!read.ok) return read;
    const { url } = read;
    asking(url);
    const checked = await checkedAddress(network, url, rules, signal);
    if (!checked.ok) return checked;
    const answer = await ask(network, url, checked.address, signal);
    if (answer.location === undefined) return answer.page;
    if (redirects === MAX_REDIRECTS)
      return {
        ok: false,
        text: `${url.host} redirects on after ${MAX_REDIRECTS} redirects: that was not followed.`,
      };
    read = readAddress(answer.location, url);
  }
}

/** The one address that is connected to, looked up once: what the name resolves to later does not matter. */
async function checkedAddress(
  network: WebNetwork,
  url: URL,
  rules: WebRules,
  signal: AbortSignal,
): Promise<WebRefusal | { readonly ok: true; readonly address: string }> {
  const refused = refusedHost(url, rules);
  if (refused !== undefined) return refused;
  const host = toHost(url);
  const addresses = isIP(host) === 0 ? await abortable(network.lookUp(host), signal) : [host];
  const closed = refusedAddress(host, addresses, rules, network.ownAddresses());
  return closed ?? { ok: true, address: addresses[0] ?? "" };
}

type Answer =
  | { readonly location: string }
  | { readonly location?: undefined; readonly page: FetchedPage | WebRefusal };

async function ask(network: WebNetwork, url: URL, address: string, signal: AbortSignal): Promise<Answer> {
  const { request } = await loadPart(import("undici"));
  const bracketed = isIP(address) === 6 ? `[${address}]` : address;
  const authority = network.dial?.(address, toPort(url)) ?? `${bracketed}:${toPort(url)}`;
  const dispatcher = await dispatcherFor(network.proxyFor(url), toHost(url));
  try {
    const answered = await request(`${url.protocol}//${authority}${url.pathname}${url.search}`, {
      method: "GET",
      headers: { ...HEADERS, host: url.host },
      dispatcher,
      signal,
    });
    const { statusCode: status, statusText, body } = answered;
    const headers = new Headers();
    for (const [name, values] of Object.entries(answered.headers))
      for (const value of [values ?? []].flat()) headers.append(name, value);
    const location = headers.get("location");
    if (REDIRECTS.has(status) && location !== null) return { location };
    const bytes = await wholeBody(body, { status, headers });
    if (typeof bytes === "string") return { page: { ok: false, text: `${url.host} ${bytes}` } };
    const contentType = headers.get("content-type") ?? "";
    return { page: { ok: true, url, status, statusText, contentType, bytes } };
  } finally {
    // What is left of the body is not read.
    await dispatcher.destroy();
  }
}

/** Used for one request. The certificate is checked for the name, also where the connection goes to a checked address. */
async function dispatcherFor(proxy: string | undefined, host: string): Promise<Dispatcher> {
  const { Agent, ProxyAgent } = await loadPart(import("undici"));
  const tls = isIP(host) === 0 ? { servername: host } : {};
  return proxy === undefined
    ? new Agent({ connect: tls, allowH2: false })
    : new ProxyAgent({ uri: proxy, requestTls: tls, allowH2: false });
}

const TOO_LARGE = `has more than ${MAX_BYTES >> 20} MiB there: it was not read. Download it with bash (curl -O), and read the file in parts.`;

/** @returns why it is not read, if it is not */
async function wholeBody(
  body: Readable,
  head: { readonly status: number; readonly headers: Headers },
): Promise<Buffer | string> {
  const encodings = (head.headers.get("content-encoding") ?? "")
    .split(",")
    .filter((name) => name.trim() !== "");
  if (encodings.length > MAX_ENCODINGS) return "compresses its answer more than once: it was not read.";
  if (Number(head.headers.get("content-length") ?? 0) > MAX_BYTES) return TOO_LARGE;
  const pieces: Uint8Array[] = [];
  let size = 0;
  for await (const piece of boundedBody(body, head)) {
    pieces.push(piece as Uint8Array);
    size += (piece as Uint8Array).length;
    if (size > MAX_BYTES) return TOO_LARGE;
  }
  return Buffer.concat(pieces, size);
}
