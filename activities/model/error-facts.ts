/** What is known of a provider's failure, read from any error without knowing its class. Pure. */
import { cutChars } from "../contract/cut-text.ts";

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
  /** The body was a web page, from a proxy, firewall or load balancer rather than the model's server. */
  readonly isPage: boolean;
  /** The response's body had no text. */
  readonly isBodyless: boolean;
  /** Wait of Google's RetryInfo, such as `12s`. */
  readonly retryDelay: string | undefined;
}

type Fields = Readonly<Record<string, unknown>>;

/** Bodies are read up to here: more is a page, and its words come first. */
const MAX_BODY_CHARS = 20_000;

const MALFORMED =
  /JSONParse|TypeValidation|InvalidResponseData|EmptyResponseBody|NoOutputGenerated|NoContentGenerated/;
/** System and undici codes of a connection that failed; they are the same for every provider. */
const NETWORK =
  /^(E(?!RR_)[A-Z_]{3,}|UND_ERR_[A-Z_]+|ERR_TLS_[A-Z_]+|ERR_SSL_[A-Z_]+|CERT_[A-Z_]+|DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_[A-Z_]+)$/;

/** @param error anything that was thrown */
export function readErrorFacts(error: unknown): ErrorFacts {
  const chain = causes(error);
  const response = first(chain, (one) =>
    typeof one["statusCode"] === "number" && one["statusCode"] !== 200 ? one["statusCode"] : undefined,
  );
  const headers = first(chain, (one) =>
    isRecord(one["responseHeaders"]) ? (one["responseHeaders"] as Record<string, string>) : undefined,
  );
  const network = first(chain, networkCode);
  const body = first(chain, (one) =>
    typeof one["responseBody"] === "string" ? one["responseBody"] : undefined,
  );
  const parsedBody = parsed(body);
  // The body comes first: what the SDK took out of it lacks the fields that only some servers have.
  const reported =
    errorOf(parsedBody) ?? first(chain, (one) => errorOf(one["data"])) ?? first(chain, errorOf);
  const inBody = body === undefined ? undefined : bodyText(body, parsedBody);
  const said = upstreamText(reported) ?? inBody ?? first([...chain, reported ?? {}], messageOf) ?? "";
  const code =
    first(chain, (one) => codeOf(one["data"]) ?? (network === undefined ? codeOf(one) : undefined)) ??
    codeOf(parsedBody) ??
    "";
  return {
    status: response ?? statusOf(reported),
    code,
    param: typeof reported?.["param"] === "string" ? reported["param"] : undefined,
    text: network === undefined || said.includes(network) ? said : `${said} [${network}]`,
    headers: { ...metadataHeaders(reported), ...headers },
    network,
    malformed:
      response === undefined &&
      chain.some((one) => MALFORMED.test(typeof one["name"] === "string" ? one["name"] : "")),
    isPage: body !== undefined && /^\s*<(?:!doctype|html|head|body|\?xml)/i.test(body),
    isBodyless: response !== undefined && !/[a-z]/i.test(inBody ?? ""),
    retryDelay: retryDelayOf(reported),
  };
}

function networkCode(one: Fields): string | undefined {
  if (typeof one["code"] === "string" && NETWORK.test(one["code"])) return one["code"];
  return one["message"] === "terminated" ? "connection closed" : undefined;
}

/** The error and what caused it, outermost first; a cycle or an endless chain ends it. */
function causes(error: unknown): Fields[] {
  const chain: Fields[] = [];
  for (
    let one = error;
    isRecord(one) && !chain.includes(one) && chain.length < 8;
    one = one["cause"] ?? one["lastError"]
  ) {
    chain.push(one);
    if (Array.isArray(one["errors"])) chain.push(...one["errors"].filter(isRecord));
  }
  return chain.length > 0 ? chain : [{ message: String(error) }];
}

/** The object that describes the error: `error`, `response.error` or the thing itself. Google may send it in an array. */
function errorOf(value: unknown): Fields | undefined {
  const one: unknown = Array.isArray(value) ? value[0] : value;
  if (!isRecord(one)) return undefined;
  if (isRecord(one["error"])) return one["error"];
  if (isRecord(one["response"]) && isRecord(one["response"]["error"])) return one["response"]["error"];
  return one;
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
function statusOf(error: Fields | undefined): number | undefined {
  const code = Number(error?.["code"]);
  return Number.isInteger(code) && code >= 400 && code <= 599 ? code : undefined;
}

/** The message of the provider behind a router; the router's own message is "Provider returned error". */
function upstreamText(error: Fields | undefined): string | undefined {
  const metadata = error?.["metadata"];
  const raw = isRecord(metadata) ? metadata["raw"] : undefined;
  if (typeof raw === "string") return bodyText(raw, parsed(raw));
  return isRecord(raw) ? bodyText(JSON.stringify(raw), raw) : undefined;
}

/** OpenRouter puts the headers of a limit into the body. */
function metadataHeaders(error: Fields | undefined): Record<string, string> {
  const metadata = error?.["metadata"];
  const headers = isRecord(metadata) ? metadata["headers"] : undefined;
  if (!isRecord(headers)) return {};
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)]),
  );
}

function retryDelayOf(error: Fields | undefined): string | undefined {
  const details = Array.isArray(error?.["details"]) ? error["details"].filter(isRecord) : [];
  return first(details, (one) => (typeof one["retryDelay"] === "string" ? one["retryDelay"] : undefined));
}

/** The provider's own sentence, else the whole body. */
function bodyText(body: string, value: unknown): string | undefined {
  const error = errorOf(value);
  const message = error?.["message"] ?? (isRecord(value) ? value["error"] : undefined);
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

function messageOf(one: Fields): string | undefined {
  return typeof one["message"] === "string" && one["message"] !== "" ? one["message"] : undefined;
}

function first<T>(chain: readonly Fields[], get: (one: Fields) => T | undefined): T | undefined {
  for (const one of chain) {
    const value = get(one);
    if (value !== undefined) return value;
  }
  return undefined;
}

function isRecord(value: unknown): value is Fields {
  return typeof value === "object" && value !== null;
}
