/** Sends requests to a provider, and adapts each request and response on the wire. */
import {
  createOutgoing,
  type Fetch,
  type OutgoingRequest,
  type OutgoingResponse,
} from "../process/outgoing-fetch.ts";
import type { Endpoint } from "./endpoint.ts";
import { gatheredBody, type Gathering } from "./gathered-body.ts";
import { authorized } from "./identity/authorized.ts";
import { editBody, type FieldEdit } from "./refusals/body-fields.ts";

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
  return json.replace(/\\(?:\\|ud[89a-f][0-9a-f]{2})/gi, (found) => (found === "\\\\" ? found : "\\ufffd"));
}

/** Statuses without a body, for which a Response takes none. */
const BODYLESS: ReadonlySet<number> = new Set([204, 205, 304]);

function watched({ body, ...head }: OutgoingResponse, exchange: Exchange): Response {
  const isOk = head.status >= 200 && head.status < 300;
  const stream = gatheredBody(body, isOk ? exchange : { ...exchange, reading: undefined });
  return new Response(BODYLESS.has(head.status) ? null : stream, head);
}
