/** What is known of a provider's failure, read from any error without knowing its class. */
import { cutChars } from "../text/cut.ts";
import { isJsonObject, type JsonObject } from "../text/json.ts";

export interface ErrorFacts {
  /** Of the response; for an error in mid-stream, the number that routers give as its code. */
  readonly status: number | undefined;
  /** Codes and types of the error, in one text. */
  readonly code: string;
  /** The part of the request that the error is about. */
  readonly param: string | undefined;
  /** The provider's own sentence. */
  readonly text: string;
  readonly headers: Readonly<Record<string, string>> | undefined;
  /** System code of a connection that failed. */
  readonly network: string | undefined;
  readonly malformed: boolean;
  /** An error of ours in it says that the next attempt would fail likewise. */
  readonly isFinal: boolean;
  /** The body was a web page, from a proxy, firewall or load balancer rather than the model's server. */
  readonly isPage: boolean;
  /** The response's body had no text. */
  readonly isBodyless: boolean;
  /** Its fields that say when to try again, such as `retryDelay: 12s` of Google's RetryInfo. */
  readonly fields: string | undefined;
  /** The server's window in tokens, from the field in which llama.cpp gives it. */
  readonly servedWindow?: number | undefined;
}

/** Bodies are read up to here: more is a page, and its words come first. */
const MAX_BODY_CHARS = 20_000;

const MALFORMED =
  /JSONParse|TypeValidation|InvalidResponseData|EmptyResponseBody|NoOutputGenerated|NoContentGenerated|BodyTooLarge/;
/** System and undici codes of a connection that failed; they are the same for every provider. */
const NETWORK =
  /^(E(?!RR_)[A-Z_]{3,}|UND_ERR_[A-Z_]+|ERR_TLS_[A-Z_]+|ERR_SSL_[A-Z_]+|CERT_[A-Z_]+|DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_[A-Z_]+)$/;

/** In the place of a code: undici has none for a body that breaks off. */
export const CLOSED = "connection closed";

/** @param error anything that was thrown */
export function readErrorFacts(error: unknown): ErrorFacts {
  const chain = causes(error);
  const response = first(chain, (link) =>
    typeof link["statusCode"] === "number" && link["statusCode"] !== 200 ? link["statusCode"] : undefined,
  );
  const headers = first(chain, (link) =>
    isJsonObject(link["responseHeaders"]) ? (link["responseHeaders"] as Record<string, string>) : undefined,
  );
  const network = first(chain, networkCode);
  const body = first(chain, (link) =>
    typeof link["responseBody"] === "string" ? link["responseBody"] : undefined,
  );
  const parsedBody = parsed(body);
  // The body comes first: what the SDK took out of it lacks the fields that only some servers have.
  const reported =
    errorOf(parsedBody) ?? first(chain, (link) => errorOf(link["data"])) ?? first(chain, errorOf);
  const inBody = body === undefined ? undefined : bodyText(body, parsedBody);
  const final = chain.find((link) => link["isPassing"] === false);
  // The SDK's own words around it say nothing.
  const tooLarge = chain.find((link) => link["name"] === "BodyTooLarge");
  const message =
    messageOf(final ?? tooLarge ?? {}) ??
    upstreamText(reported) ??
    inBody ??
    first([...chain, reported ?? {}], messageOf) ??
    "";
  const code =
    first(chain, (link) => codeOf(link["data"]) ?? (network === undefined ? codeOf(link) : undefined)) ??
    codeOf(parsedBody) ??
    "";
  return {
    status: response ?? statusOf(reported),
    code,
    param: typeof reported?.["param"] === "string" ? reported["param"] : undefined,
    text: network === undefined || message.includes(network) ? message : `${message} [${network}]`,
    headers: { ...metadataHeaders(reported), ...headers },
    network,
    isFinal: final !== undefined,
    malformed:
      response === undefined &&
      chain.some((link) => MALFORMED.test(typeof link["name"] === "string" ? link["name"] : "")),
    isPage: body !== undefined && /^\s*<(?:!doctype|html|head|body|\?xml)/i.test(body),
    isBodyless: response !== undefined && !/[a-z]/i.test(inBody ?? ""),
    fields: retryFields(reported),
    servedWindow: typeof reported?.["n_ctx"] === "number" ? reported["n_ctx"] : undefined,
  };
}

function networkCode(link: JsonObject): string | undefined {
  if (typeof link["code"] === "string" && NETWORK.test(link["code"])) return link["code"];
  return link["message"] === "terminated" ? CLOSED : undefined;
}

/** The error and what caused it, outermost first; a cycle or an endless chain ends it. */
function causes(error: unknown): JsonObject[] {
  const chain: JsonObject[] = [];
  for (
    let link = ownOf(error);
    isJsonObject(link) && !chain.includes(link) && chain.length < 8;
    link = link["cause"] ?? link["lastError"]
  ) {
    chain.push(link);
    if (Array.isArray(link["errors"])) chain.push(...link["errors"].filter(isJsonObject));
  }
  return chain.length > 0 ? chain : [{ message: String(error) }];
}

/** The SDK wraps an error in mid-answer, with a status that it guesses from the words: only the provider's own counts. */
function ownOf(error: unknown): unknown {
  return isJsonObject(error) && error["name"] === "AI_StreamProviderError" && isJsonObject(error["data"])
    ? error["data"]
    : error;
}

/** The object that describes the error: `error`, `response.error` or the thing itself. Google may send it in an array. */
function errorOf(value: unknown): JsonObject | undefined {
  const object: unknown = Array.isArray(value) ? value[0] : value;
  if (!isJsonObject(object)) return undefined;
  if (isJsonObject(object["error"])) return object["error"];
  if (isJsonObject(object["response"]) && isJsonObject(object["response"]["error"]))
    return object["response"]["error"];
  return object;
}

function codeOf(value: unknown): string | undefined {
  const error = errorOf(value);
  if (error === undefined) return undefined;
  // `status` is Google's: RESOURCE_EXHAUSTED.
  const parts = [error["code"], error["type"], error["status"]].filter(
    (part): part is string | number => typeof part === "string" || typeof part === "number",
  );
  return parts.length === 0 ? undefined : parts.join(" ");
}

/** Routers give an HTTP status as the code of an error in mid-stream. Source: OpenRouter's errors documentation. */
function statusOf(error: JsonObject | undefined): number | undefined {
  const code = Number(error?.["code"]);
  return Number.isInteger(code) && code >= 400 && code <= 599 ? code : undefined;
}

/** The message of the provider behind a router; the router's own message is "Provider returned error". */
function upstreamText(error: JsonObject | undefined): string | undefined {
  const metadata = error?.["metadata"];
  const raw = isJsonObject(metadata) ? metadata["raw"] : undefined;
  if (typeof raw === "string") return bodyText(raw, parsed(raw));
  return isJsonObject(raw) ? bodyText(JSON.stringify(raw), raw) : undefined;
}

/** OpenRouter puts the headers of a limit into the body. */
function metadataHeaders(error: JsonObject | undefined): Record<string, string> {
  const metadata = error?.["metadata"];
  const headers = isJsonObject(metadata) ? metadata["headers"] : undefined;
  if (!isJsonObject(headers)) return {};
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)]),
  );
}

/** Such as `retryDelay` in Google's details, `resets_in_seconds` and `resets_at` of ChatGPT's plans, `retry_after` of many. */
const RETRY_FIELD = /^(?:retry|reset)[a-z]*[-_]?(?:after|delay|in|at|time)?[-_]?/i;

function retryFields(error: JsonObject | undefined): string | undefined {
  if (error === undefined) return undefined;
  const details = Array.isArray(error["details"]) ? error["details"] : [error["details"]];
  const objects = [error, error["metadata"], ...details].filter(isJsonObject);
  const fields = objects.flatMap((object) =>
    Object.entries(object).flatMap(([name, value]) =>
      RETRY_FIELD.test(name) && (typeof value === "string" || typeof value === "number")
        ? [`${name}: ${value}`]
        : [],
    ),
  );
  return fields.length === 0 ? undefined : fields.join("\n");
}

/** The provider's own sentence, else the whole body. */
function bodyText(body: string, value: unknown): string | undefined {
  const error = errorOf(value);
  const message =
    error?.["message"] ??
    error?.["msg"] ??
    error?.["error_msg"] ??
    (isJsonObject(value) ? value["error"] : undefined);
  if (typeof message === "string") return message;
  // A proxy's error page: its words without its markup.
  const plain = cutChars(body, MAX_BODY_CHARS)
    .replaceAll(/<style.*?<\/style>|<[^>]*>/gs, " ")
    .replaceAll(/\s+/g, " ")
    .trim();
  return plain === "" ? undefined : cutChars(plain, 2_000);
}

function parsed(body: string | undefined): unknown {
  try {
    return body === undefined ? undefined : JSON.parse(body);
  } catch {
    return undefined;
  }
}

function messageOf(link: JsonObject): string | undefined {
  return typeof link["message"] === "string" && link["message"] !== "" ? link["message"] : undefined;
}

function first<T>(chain: readonly JsonObject[], get: (link: JsonObject) => T | undefined): T | undefined {
  for (const link of chain) {
    const value = get(link);
    if (value !== undefined) return value;
  }
  return undefined;
}
