/** Sends a request with an identity's token, and once more with a new one if the server says that it has ended. */
import { Readable } from "node:stream";
import { cutChars } from "../../contract/cut-text.ts";
import type { OutgoingRequest, OutgoingResponse } from "../../process/outgoing-fetch.ts";
import { ModelError } from "../model.ts";
import type { Identity } from "./identities.ts";

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
 * Refused requests are not billed, so the second one is paid once.
 * @throws ModelError (credentials) if the server refuses a new token too
 */
export async function authorized(
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
  const bytes = await start(response.body);
  const text = bytes.toString("utf8");
  const whole = { ...response, body: Readable.from([bytes], { objectMode: false }) };
  if (!refusesToken(response, text)) return { response: whole };
  return { response: whole, refusal: cutChars(text.replaceAll(/\s+/g, " ").trim(), MAX_SAID_CHARS) };
}

async function start(body: Readable): Promise<Buffer> {
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
