/** Sends requests to a provider, and adapts each request and response on the wire. */
import { Readable } from "node:stream";
import { cutChars } from "../text/cut.ts";
import {
  createOutgoing,
  type Fetch,
  type OutgoingRequest,
  type OutgoingResponse,
} from "../process/outgoing-fetch.ts";
import type { Endpoint } from "./endpoint.ts";
import type { Identity } from "./identity/identities.ts";
import { ModelError } from "./model.ts";
import { editBody, type FieldEdit } from "./refusals/body-fields.ts";
import { gatheredBody, type Gathering } from "./stream-events.ts";

type Body = Record<string, unknown>;

/** Changes to one request and its response. Only the events of a successful response are parsed. */
interface Exchange extends Gathering {
  readonly endpoint: Endpoint;
  /** Fields of the request's body that replace the SDK's. */
  readonly body: Body;
  /** Changes that this server needs. */
  readonly fieldEdits: readonly FieldEdit[];
  /** Called when the response's headers arrive. */
  readonly onHeaders: () => void;
}

export interface Network {
  fetchFor(exchange: Exchange): Fetch;
}

export async function createNetwork(): Promise<Network> {
  const { request } = await createOutgoing();
  return {
    fetchFor: (exchange) => async (input, init) => {
      const { identity } = exchange.endpoint;
      const address = addressOf(input, exchange.endpoint);
      const edited = editRequest(init, exchange);
      const send = (sent: OutgoingRequest) => request(address, sent);
      const response = await (identity === undefined ? send(edited) : authorized(identity, edited, send));
      exchange.onHeaders();
      return watched(response, exchange);
    },
  };
}

function addressOf(
  input: Parameters<Fetch>[0],
  { query, isVertexClaude, modelId }: Pick<Endpoint, "query" | "isVertexClaude" | "modelId">,
): string {
  const url = new URL(input instanceof Request ? input.url : input);
  if (isVertexClaude === true)
    url.pathname = url.pathname.replace(/\/messages$/, `/models/${modelId}:streamRawPredict`);
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
  return url.toString();
}

function editRequest(
  init: RequestInit | undefined,
  { endpoint, body, fieldEdits }: Exchange,
): OutgoingRequest {
  const headers = new Headers(init?.headers);
  const edit = endpoint.isVertexClaude === true ? toVertexClaude : (json: string) => json;
  // The SDKs require a key; a server that takes its credentials from another header rejects a made-up one.
  if (endpoint.apiKey === undefined && Object.keys(endpoint.headers).length > 0)
    for (const name of ["authorization", "x-api-key", "x-goog-api-key"]) headers.delete(name);
  for (const [name, value] of Object.entries(endpoint.headers)) headers.set(name, value);
  const { method = "GET", body: json, signal = null } = init ?? {};
  return {
    method,
    headers,
    body: typeof json === "string" ? wellFormed(edit(withFields(json, body, fieldEdits))) : null,
    signal,
  };
}

/** Source: platform.claude.com/docs/en/build-with-claude/claude-on-vertex-ai. */
function toVertexClaude(json: string): string {
  const { model: _, ...body } = JSON.parse(json) as Body;
  return JSON.stringify({ anthropic_version: "vertex-2023-10-16", ...body });
}

function withFields(json: string, fields: Body, edits: readonly FieldEdit[]): string {
  if (Object.keys(fields).length === 0 && edits.length === 0) return json;
  return JSON.stringify(editBody({ ...(JSON.parse(json) as Body), ...fields }, edits));
}

/**
 * The last sanitizer for text: JSON.stringify writes a lone surrogate as an escape, and a provider refuses the whole
 * request for it, at every later step too. Escaped backslashes are matched first, so that a text about `\\ud800` stays.
 */
function wellFormed(json: string): string {
  if (!/\\ud[89a-f]/i.test(json)) return json;
  return json.replace(/\\(?:\\|ud[89a-f][0-9a-f]{2})/gi, (sequence) =>
    sequence === "\\\\" ? sequence : "\\ufffd",
  );
}

/** Statuses without a body, for which a Response takes none. */
const BODYLESS: ReadonlySet<number> = new Set([204, 205, 304]);

function watched({ body, ...head }: OutgoingResponse, exchange: Exchange): Response {
  const isOk = head.status >= 200 && head.status < 300;
  const stream = gatheredBody(body, isOk ? exchange : { ...exchange, reading: undefined });
  return new Response(BODYLESS.has(head.status) ? null : stream, head);
}

type Send = (request: OutgoingRequest) => Promise<OutgoingResponse>;

/** Headers in which the SDKs send a key: only the token may speak for us. */
const KEY_HEADERS = ["x-api-key", "x-goog-api-key", "api-key"];
/** A server's and our clock may differ by this much before a signature is refused. Source: Amazon's, 5 minutes. */
const MAX_SKEW_MS = 4 * 60_000;
const MAX_BODY_BYTES = 65_536;
const MAX_SAID_CHARS = 300;

/** What a 403 says if the token is the reason, and not the rights of whom it stands for. */
const TOKEN_REASON =
  /expire|invalid[_ ]?(bearer |access |security )?token|token (is|was|has) (invalid|revoked|been)|UnrecognizedClient|InvalidSignature|SignatureDoesNotMatch|not yet (valid|current)|UNAUTHENTICATED|ACCESS_TOKEN|clock/i;

/**
 * What a 400 says in that case: Amazon's services answer so too. Only as an error's own code or first words, since a 400
 * may quote what was sent. Source: Amazon's common errors.
 */
const TOKEN_CODE =
  "(?:Expired|Invalid)Token(?:Id)?|InvalidClientTokenId|UnrecognizedClient|TokenRefreshRequired|RequestExpired|RequestTimeTooSkewed|SignatureDoesNotMatch|InvalidSignature";
const TOKEN_ERROR = new RegExp(
  [
    `^\\s*(?:${TOKEN_CODE})(?:Exception)?\\b`,
    `"(?:__type|type|code)"\\s*:\\s*"(?:[\\w.]+#)?(?:${TOKEN_CODE})(?:Exception)?"`,
    `<Code>(?:${TOKEN_CODE})(?:Exception)?</Code>`,
    `"message"\\s*:\\s*"(?:(?:${TOKEN_CODE})(?:Exception)?\\b|The (?:provided |security )?token (?:included in the request )?(?:is|has) (?:expired|invalid))`,
  ].join("|"),
  "i",
);

function refusesToken({ status, headers }: OutgoingResponse, text: string): boolean {
  const type = headers.get("x-amzn-errortype") ?? "";
  if (status === 400) return TOKEN_ERROR.test(type) || TOKEN_ERROR.test(text);
  return status === 401 || TOKEN_REASON.test(`${headers.get("www-authenticate") ?? ""} ${type} ${text}`);
}

/**
 * Sends a request with an identity's token, and once more with a new one if the server says that it has ended.
 * Refused requests are not billed, so the second one is paid once.
 * @throws ModelError (credentials) if the server refuses a new token too
 */
async function authorized(
  identity: Identity,
  request: OutgoingRequest,
  send: Send,
): Promise<OutgoingResponse> {
  const signal = request.signal ?? new AbortController().signal;
  const token = await identity.token(signal);
  const first = await judged(await send(withToken(request, token)));
  if (first.refusal === undefined) return first.response;
  const fresh = await identity.token(signal, token);
  const second = await judged(await send(withToken(request, fresh)));
  if (second.refusal === undefined) return second.response;
  throw new ModelError(
    identity.mask(
      `${identity.name}: the server refuses its token, a new one too (${second.response.status}${second.refusal === "" ? "" : `: ${second.refusal}`}). ${fixOf(identity, second.response)}`,
    ),
    { class: "credentials", status: second.response.status },
  );
}

function withToken({ headers, ...request }: OutgoingRequest, token: string): OutgoingRequest {
  const own = new Headers(headers);
  for (const name of KEY_HEADERS) own.delete(name);
  own.set("authorization", `Bearer ${token}`);
  return { ...request, headers: own };
}

/** The server's words if it refuses the token. The body of any other answer is still unread, or whole again. */
async function judged(response: OutgoingResponse): Promise<{ response: OutgoingResponse; refusal?: string }> {
  if (![400, 401, 403].includes(response.status)) return { response };
  const bytes = await firstBytes(response.body);
  const text = bytes.toString("utf8");
  const whole = { ...response, body: Readable.from([bytes], { objectMode: false }) };
  if (!refusesToken(response, text)) return { response: whole };
  return { response: whole, refusal: cutChars(text.replaceAll(/\s+/g, " ").trim(), MAX_SAID_CHARS) };
}

async function firstBytes(body: Readable): Promise<Buffer> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of body) {
    parts.push(Buffer.from(part as Uint8Array));
    bytes += (part as Uint8Array).length;
    if (bytes > MAX_BODY_BYTES) break;
  }
  return Buffer.concat(parts).subarray(0, MAX_BODY_BYTES);
}

function fixOf({ fix, now }: Identity, { headers }: OutgoingResponse): string {
  const skewMs = now() - Date.parse(headers.get("date") ?? "");
  if (!(Math.abs(skewMs) > MAX_SKEW_MS)) return fix;
  const minutes = Math.round(Math.abs(skewMs) / 60_000);
  return `The clock of the worker's machine is ${minutes} min ${skewMs > 0 ? "ahead of" : "behind"} the server's: set it.`;
}
