/**
 * How the worker reaches models' providers and MCP servers: undici, because Node's fetch does not let us remove its time limits or
 * set the proxy that HTTP_PROXY, HTTPS_PROXY and NO_PROXY name.
 */
import type { Readable } from "node:stream";
import type { Dispatcher } from "undici";
import { trustAuthorities } from "./authorities.ts";
import { boundedBody, boundedResponse, type Bounds } from "./bounded-body.ts";
import { loadPart } from "./load-part.ts";
import { isDirect, isLoopbackHost, readProxies } from "./proxies.ts";

export type Fetch = typeof globalThis.fetch;

/** As fetch. A body is read up to a limit, by default that of an answer. */
export type BoundedFetch = (
  input: Parameters<Fetch>[0],
  init?: RequestInit & { readonly bounds?: Bounds | undefined },
) => Promise<Response>;

export interface OutgoingRequest {
  readonly method: string;
  readonly headers: Headers;
  readonly body: string | null;
  readonly signal: AbortSignal | null;
}

/** A response whose body is still on its way. */
export interface OutgoingResponse {
  readonly status: number;
  readonly statusText: string;
  readonly headers: Headers;
  readonly body: Readable;
}

export interface Outgoing {
  readonly fetch: BoundedFetch;
  /**
   * Like fetch, for a body in many small pieces: each costs half as much processor time without the streams that fetch puts
   * around it (measured 2026-11: 36 instead of 74 ms for 400 pieces in 10 s). It asks for an uncompressed body.
   *
   * Redirects are followed within the origin only: another server gets neither the body nor the headers.
   *
   * @throws TypeError "fetch failed" with its cause, as fetch does; the signal's reason if it is aborted
   */
  readonly request: (url: string, request: OutgoingRequest) => Promise<OutgoingResponse>;
  readonly close: () => Promise<void>;
}

/** As fetch. Source: its standard, "HTTP-redirect fetch". */
const MAX_REDIRECTS = 20;
/** Of a model's whole answer. The longest (128,000 tokens, each an event of some 400 bytes) has 50 MB. */
const MAX_MODEL_STREAM_BYTES = 256 << 20;
/** Of a model's answer. Chosen: the fastest write some 3,000 tokens a second, several in an event. */
const MODEL_EVENTS_PER_SECOND = 2_000;

/**
 * Reads the environment's proxies and certificate authorities once. Its idle connections keep no process alive.
 * @throws ProxyUnusable, AuthoritiesUnusable; a worker checks that at its start
 */
export async function createOutgoing(): Promise<Outgoing> {
  const { Agent, EnvHttpProxyAgent, fetch, interceptors, request } = await loadPart(import("undici"));
  trustAuthorities();
  const limits = { headersTimeout: 0, bodyTimeout: 0, connectTimeout: 0 };
  const proxies = readProxies();
  const { http: httpProxy, https: httpsProxy, none: noProxy } = proxies;
  const [direct, proxied] = [
    new Agent(limits),
    new EnvHttpProxyAgent({ ...limits, httpProxy, httpsProxy, noProxy }),
  ];
  const redirected = interceptors.redirect({ maxRedirections: MAX_REDIRECTS, throwOnMaxRedirect: true });
  // The same interface as Node's own, whose types are those of an older undici.
  const send = fetch as unknown as (url: string, init: object) => Promise<Response>;
  return {
    fetch: async (input, { bounds, ...init } = {}) => {
      const url = input instanceof Request ? input.url : String(input);
      return boundedResponse(
        await send(url, { ...init, dispatcher: isDirect(url, proxies) ? direct : proxied }),
        bounds,
      );
    },
    request: async (url, { headers, ...sent }) => {
      const dispatcher = (isDirect(url, proxies) ? direct : proxied).compose(
        within(new URL(url).origin),
        redirected,
      );
      const sentHeaders = { accept: "*/*", "accept-encoding": "identity", ...Object.fromEntries(headers) };
      const answered = await request(url, { ...sent, headers: sentHeaders, dispatcher }).catch(
        (cause: unknown) => {
          throw sent.signal?.aborted === true ? cause : new TypeError("fetch failed", { cause });
        },
      );
      const received = headersOf(answered.headers);
      const { statusCode: status, statusText } = answered;
      const head = { status, statusText, headers: received };
      return {
        ...head,
        body: boundedBody(answered.body, head, {
          maxStreamBytes: MAX_MODEL_STREAM_BYTES,
          eventsPerSecond: MODEL_EVENTS_PER_SECOND,
        }),
      };
    },
    close: async () => void (await Promise.all([direct.destroy(), proxied.destroy()])),
  };
}

/** Whoever asks again is redirected again. */
class RedirectRefused extends Error {
  override readonly name = "RedirectRefused";
  readonly isPassing = false;

  constructor(from: string, to: string) {
    super(
      `${from} redirects to ${to}. The request was not sent there, because it contains the conversation and keys. If that server is meant, set its address (baseURL).`,
    );
  }
}

/** Refuses requests to any other origin, as a redirect makes them. */
function within(origin: string): Dispatcher.DispatcherComposeInterceptor {
  return (dispatch) => (options, handler) => {
    const to = new URL(String(options.origin)).origin;
    if (to !== origin) throw new RedirectRefused(origin, to);
    return dispatch(options, handler);
  };
}

function headersOf(fields: Readonly<Record<string, string | string[] | undefined>>): Headers {
  const headers = new Headers();
  for (const [name, values] of Object.entries(fields))
    for (const value of [values ?? []].flat()) headers.append(name, value);
  return headers;
}

/** Whether a URL is on this machine: no proxy is used, and its server may read the whole input before it sends a header. */
export function isLoopback(url: string): boolean {
  return URL.canParse(url) && isLoopbackHost(new URL(url).hostname);
}
