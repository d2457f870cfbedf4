/** The library over HTTP, its events as a stream, and the page that uses both. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { networkInterfaces } from "node:os";
import { cleanText, HIDDEN_PATTERN } from "../../activities/text/clean.ts";
import { QUESTION_TITLES, wantsWords } from "../../activities/contract/questions.ts";
import type { Event, Longhaul } from "../library/types.ts";
import { describeEvent, restoredText } from "../view/describe-event.ts";
import type { Sentence } from "../view/sentence.ts";
import { checkBearer, refuseOrigin, type Guard, type HttpRefusal } from "./local-server.ts";
import { httpFailure, HEADERS, sendJson, parse } from "./http.ts";
import { EVENTS_PATH, routes } from "./routes.ts";
import { z } from "zod";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

export interface Serving {
  /** The library for a user: undefined is the person who started the server. */
  readonly clientOf: (user: string | undefined) => Longhaul;
  readonly host: string;
  /** 0 = a free one. */
  readonly port: number;
  readonly tokens: Guard["tokens"];
  /** Origins, such as `https://longhaul.example.com`, of proxies in front of it. */
  readonly behind?: readonly string[];
  /** Masks secrets in every answer. */
  readonly onFault: (error: unknown) => void;
}

export interface Served {
  /** `http://host:port` */
  readonly url: string;
  /** The addresses in the same form at which other machines may reach it. */
  readonly elsewhere: readonly string[];
  close(): Promise<void>;
}

/** @throws NodeJS.ErrnoException if the port cannot be opened */
export async function serve({
  clientOf,
  host,
  port,
  tokens,
  behind = [],
  onFault,
}: Serving): Promise<Served> {
  const ended = new AbortController();
  const page = readPage();
  const origins = new Set(behind);
  let guard: Guard = { tokens, hosts: new Set(), origins };
  const server = createServer((request, response) => {
    answer({ clientOf, guard, page, ended: ended.signal, onFault }, request, response).catch(onFault);
  });
  server.listen(port, host);
  await once(server, "listening");
  const { address, port: opened } = server.address() as AddressInfo;
  const hosts = new Set([...hostsOf(host, opened), ...behind.map((origin) => new URL(origin).host)]);
  guard = { tokens, hosts, origins };
  const urlOf = (name: string) => `http://${nameOf(name)}:${opened}`;
  return {
    url: urlOf(host),
    elsewhere: reachable(host, address).map(urlOf),
    close: () => close(server, ended),
  };
}

async function close(server: Server, ended: AbortController): Promise<void> {
  const closed = once(server, "close");
  server.close();
  ended.abort();
  server.closeIdleConnections();
  await closed;
}

const isAny = (host: string) => host === "0.0.0.0" || host === "::";
const nameOf = (host: string) => {
  if (isAny(host)) return "127.0.0.1";
  return host.includes(":") ? `[${host}]` : host;
};

const isLoopback = (address: string) => address.startsWith("127.") || address === "::1";

const ownAddresses = () => Object.values(networkInterfaces()).flatMap((addresses = []) => addresses);

/**
 * What other machines may call a server that listens on `host`, which is this address.
 * Link-local addresses are left out: they need the name of an interface.
 */
function reachable(host: string, address: string): string[] {
  if (!isAny(host)) return isLoopback(address) ? [] : [host];
  return ownAddresses()
    .filter(({ family, internal }) => !internal && (host === "::" || family === "IPv4"))
    .map((info) => info.address)
    .filter((address) => !address.startsWith("fe80:"));
}

/** Names of this server; if it listens on all interfaces, this machine's addresses. */
function hostsOf(host: string, port: number): Set<string> {
  const hosts = isAny(host) ? ownAddresses().map(({ address }) => address) : [host];
  const names = ["127.0.0.1", "localhost", "[::1]", ...hosts.map((address) => nameOf(address).toLowerCase())];
  // A browser omits the default port.
  return new Set(names.flatMap((name) => [`${name}:${port}`, ...(port === 80 ? [name] : [])]));
}

interface Context extends Pick<Serving, "clientOf" | "onFault"> {
  readonly guard: Guard;
  readonly page: Page;
  readonly ended: AbortSignal;
}

async function answer(context: Context, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const refused = refuseOrigin(context.guard, request.headers);
  if (refused !== undefined) return refuse(response, refused);
  // Some request targets are not valid addresses, such as `//`.
  const target = URL.parse(request.url ?? "/", "http://server");
  if (target === null)
    return refuse(response, { status: 400, message: "The request's target is not a path." });
  const { pathname, searchParams } = target;
  if (pathname === "/" && request.method === "GET") return sendPage(response, context.page);
  const bearer = checkBearer(context.guard, request.headers);
  if ("status" in bearer) return refuse(response, bearer);
  try {
    await call(context, { ...bearer, request, response, pathname, query: searchParams });
  } catch (error) {
    const { status, body } = httpFailure(error);
    if (status === 500) context.onFault(error);
    // A stream that has begun is cut off: its reader resumes it.
    if (response.headersSent) response.destroy();
    else sendJson(response, status, body);
  }
}

interface Request {
  readonly user: string | undefined;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly pathname: string;
  readonly query: URLSearchParams;
}

async function call(
  { clientOf, ended }: Context,
  { user, request, response, pathname, query }: Request,
): Promise<void> {
  const client = clientOf(user);
  const [, followed] = EVENTS_PATH.exec(pathname) ?? [];
  if (followed !== undefined && request.method === "GET")
    return streamEvents({ client, id: decoded(followed), ended }, request, response, query);
  const fitting = routes.filter(({ path }) => path.test(pathname));
  const route = fitting.find(({ method }) => method === request.method);
  if (route === undefined) {
    const methods = [...fitting.map(({ method }) => method), ...(followed === undefined ? [] : ["GET"])];
    if (methods.length === 0) return refuse(response, { status: 404, message: "There is no such path." });
    response.setHeader("allow", methods.join(", "));
    return refuse(response, { status: 405, message: `This path has only ${methods.join(" and ")}.` });
  }
  const names = (route.path.exec(pathname) ?? []).slice(1).map(decoded);
  sendJson(response, route.status, await route.run({ client, user, request, query, names }));
}

/** As it is stored: no name has characters that Postgres refuses. */
function decoded(text: string): string {
  try {
    return cleanText(decodeURIComponent(text));
  } catch {
    return text;
  }
}

function refuse(response: ServerResponse, { status, message }: HttpRefusal): void {
  sendJson(response, status, { error: { message, fix: null, exitCode: 2 } });
}

function sendPage(response: ServerResponse, { html, policy }: Page): void {
  response.writeHead(200, {
    ...HEADERS,
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": policy,
  });
  response.end(html);
}

/** Proxies and phones drop connections that are silent for a minute. */
const HEARTBEAT_MS = 15_000;

const error = "expected the number of an event, such as 120";
const seq = z.coerce.number({ error }).int({ error }).min(0, { error }).default(0);

/**
 * A session's events as server-sent events: their ids are `seq`, by which a client resumes after a disconnect.
 * Ends with the session's run, when the client leaves, or when `ended` is aborted.
 * @throws ClientError before the first byte
 */
export async function streamEvents(
  stream: { readonly client: Longhaul; readonly id: string; readonly ended: AbortSignal },
  request: IncomingMessage,
  response: ServerResponse,
  query: URLSearchParams,
): Promise<void> {
  const { "last-event-id": last } = request.headers;
  const from =
    last === undefined
      ? parse(seq, query.get("from") ?? undefined, "from")
      : parse(seq, last, "Last-Event-ID");
  const disconnect = new AbortController();
  // Registered first: otherwise a client that leaves at once would be served until the session's end.
  response.on("close", () => disconnect.abort());
  // An unknown session is reported as a status.
  const { id } = await stream.client.status(stream.id);
  const signal = AbortSignal.any([disconnect.signal, stream.ended]);
  // Without it nginx and its like hold events back until a buffer is full.
  const unbuffered = { "x-accel-buffering": "no" };
  response.writeHead(200, {
    ...HEADERS,
    ...unbuffered,
    "content-type": "text/event-stream; charset=utf-8",
  });
  response.flushHeaders();
  const heartbeat = setInterval(() => response.write(": still here\n\n"), HEARTBEAT_MS);
  try {
    const events = stream.client.events(id, { from, signal });
    for (;;) {
      const { value, done } = await events.next();
      if (done === true) {
        if (value !== undefined) response.write(`event: end\ndata: ${JSON.stringify(value)}\n\n`);
        break;
      }
      const data = JSON.stringify(frameOf(value));
      const isTaken = response.write(`id: ${value.seq}\ndata: ${data}\n\n`);
      // Waits for a slow reader: events wait in Postgres, not here.
      if (!isTaken) await once(response, "drain", { signal }).catch(() => undefined);
    }
  } finally {
    clearInterval(heartbeat);
    response.end();
  }
}

/** An event as it is stored, and in words, so that no reader has to word it again. */
function frameOf(event: Event): Event & { readonly sentences?: readonly Sentence[] } {
  const sentences = describeEvent(event);
  return sentences.length === 0 ? event : { ...event, sentences };
}

/** One document, assembled from its parts, that runs nothing but its own script. */
export interface Page {
  readonly html: string;
  readonly policy: string;
}

const part = (name: string) => readFileSync(new URL(`./page/${name}`, import.meta.url), "utf8");

export function readPage(): Page {
  const style = [part("page.css"), part("session.css")].join("\n");
  const files = ["show.js", "controls.js", "many.js", "page.js", "start.js"].map(part);
  const constants = [
    `const HIDDEN = /${HIDDEN_PATTERN}/gu;`,
    `const QUESTION_TITLES = ${JSON.stringify(QUESTION_TITLES)};`,
    `const RESTORED = ${JSON.stringify(restoredText())};`,
    `const WORDED = ${JSON.stringify(Object.keys(QUESTION_TITLES).filter(wantsWords))};`,
  ];
  const script = [...constants, ...files].join("\n");
  const html = part("page.html")
    // The hashes cover everything between the tags.
    .replace(/(?<=<style>)[^<]*/, () => style)
    .replace(/(?<=<script>)[^<]*/, () => script);
  const policy = [
    "default-src 'none'",
    `script-src '${hashOf(script)}'`,
    `style-src '${hashOf(style)}'`,
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; ");
  return { html, policy };
}

const hashOf = (text: string) => `sha256-${createHash("sha256").update(text).digest("base64")}`;
