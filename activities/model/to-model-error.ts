/** Whatever the SDK or the network throws, as a ModelError with its class and words that help. Pure. */
import { cutChars, shorten } from "../contract/cut-text.ts";
import type { Api } from "../config/model-target.ts";
import { ModelError, type ModelErrorClass } from "./model.ts";
import { isOverflowText, isRateLimitText } from "./overflow.ts";
import { retryAfterMs } from "./retry-after.ts";

const MAX_PROVIDER_CHARS = 500;
const MAX_MESSAGE_CHARS = 1_000;

export interface ErrorContext {
  readonly model: string;
  readonly api: Api;
  /** Takes secrets out of a text. */
  readonly mask: (text: string) => string;
  readonly now: number;
}

/** What is known of a failure, read from any error without knowing its class. */
interface Facts {
  readonly status: number | undefined;
  readonly code: string;
  readonly text: string;
  readonly headers: Readonly<Record<string, string>> | undefined;
  readonly network: string | undefined;
  readonly malformed: boolean;
}

/** @param error anything; a ModelError is handed back as it is */
export function toModelError(error: unknown, context: ErrorContext): ModelError {
  if (error instanceof ModelError) return error;
  const facts = read(error);
  const kind = classify(facts);
  const wait = retryAfterMs(facts.headers, context.now);
  return new ModelError(wording(kind, facts, context), {
    class: kind,
    ...(facts.status === undefined ? {} : { status: facts.status }),
    ...(wait === undefined ? {} : { retryAfterMs: wait }),
    cause: error,
  });
}

/** Source: requirement 3; survey of durable engines, D5; survey of reliability, R30–R31, R40. */
function classify({ status, code, text, network, malformed }: Facts): ModelErrorClass {
  const said = `${code} ${text}`;
  // A used-up account answers 429 as well, and no waiting helps.
  if (isQuota(said)) return "quota";
  if (isOverflowText(said) || status === 413) return "overflow";
  if (status === 429 || (isRateLimitText(said) && status !== 401 && status !== 403)) return "rate-limit";
  if (network !== undefined) return "unavailable";
  if (/ERR_INVALID_URL|Invalid URL|Failed to parse URL/.test(said)) return "not-found";
  if (malformed) return "malformed";
  if (status === undefined) return "unavailable";
  if (status === 401 || status === 403 || status === 402) return "credentials";
  if (status === 404) return "not-found";
  if (status === 408 || status === 409 || status === 425) return "unavailable";
  return status >= 400 && status < 500 ? "rejected" : "unavailable";
}

function isQuota(said: string): boolean {
  return /insufficient_quota|exceeded your current quota|billing_hard_limit|billing hard limit/i.test(said);
}

function wording(kind: ModelErrorClass, facts: Facts, { model, api, mask }: ErrorContext): string {
  const status = facts.status === undefined ? "" : ` (${facts.status})`;
  const said =
    shorten(mask(facts.text).toWellFormed(), MAX_PROVIDER_CHARS) || (facts.network ?? "no text came with it");
  const provider = model.split("/")[0] ?? model;
  const text: Record<ModelErrorClass, string> = {
    overflow: `The request does not fit the context window of ${model}${status}: ${said}`,
    "rate-limit": `${provider} limits the rate of requests${status}: ${said}`,
    unavailable: `${provider} could not be reached or did not answer${status}: ${said}. Check OPENAI_BASE_URL and the network if it stays so.`,
    silent: said,
    "too-long": said,
    malformed: `${provider} sent an answer that cannot be read${status}: ${said}`,
    rejected: `${provider} refuses the request${status}: ${said}`,
    quota: `The account at ${provider} has no credit left${status}: ${said}. Add credit, or set OPENAI_API_KEY to a key of another account, and resume.`,
    credentials: `${provider} refuses the credentials${status}: ${said}. Set OPENAI_API_KEY to a valid key for OPENAI_BASE_URL and resume.`,
    "not-found": `${provider} does not know what was asked for${status}: ${said}. Check the model's name (${model}) and OPENAI_BASE_URL${
      api === "responses" ? "; if the server speaks chat completions only, set models.<id>.api: chat" : ""
    }.`,
  };
  return shorten(mask(text[kind]), MAX_MESSAGE_CHARS);
}

function read(error: unknown): Facts {
  const chain = causes(error);
  const status = first(chain, (one) =>
    typeof one["statusCode"] === "number" && one["statusCode"] !== 200 ? one["statusCode"] : undefined,
  );
  const headers = first(chain, (one) =>
    isRecord(one["responseHeaders"]) ? (one["responseHeaders"] as Record<string, string>) : undefined,
  );
  const network = first(chain, networkCode);
  const body = first(chain, (one) =>
    typeof one["responseBody"] === "string" ? one["responseBody"] : undefined,
  );
  const said = (body === undefined ? undefined : bodyText(body)) ?? first(chain, messageOf) ?? "";
  return {
    status,
    code:
      first(chain, (one) => codeOf(one["data"]) ?? (network === undefined ? codeOf(one) : undefined)) ??
      codeOf(parsed(body)) ??
      "",
    text: network === undefined || said.includes(network) ? said : `${said} [${network}]`,
    headers,
    network,
    malformed:
      status === undefined &&
      chain.some((one) => MALFORMED.test(typeof one["name"] === "string" ? one["name"] : "")),
  };
}

const MALFORMED =
  /JSONParse|TypeValidation|InvalidResponseData|EmptyResponseBody|NoOutputGenerated|NoContentGenerated/;
/** System and undici codes of a connection that failed; they are the same for every provider. */
const NETWORK =
  /^(E(?!RR_)[A-Z_]{3,}|UND_ERR_[A-Z_]+|ERR_TLS_[A-Z_]+|ERR_SSL_[A-Z_]+|CERT_[A-Z_]+|DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_[A-Z_]+)$/;

function networkCode(one: Record<string, unknown>): string | undefined {
  if (typeof one["code"] === "string" && NETWORK.test(one["code"])) return one["code"];
  return one["message"] === "terminated" ? "connection closed" : undefined;
}

/** The error and what caused it, outermost first; a cycle or an endless chain ends it. */
function causes(error: unknown): Record<string, unknown>[] {
  const chain: Record<string, unknown>[] = [];
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

function codeOf(value: unknown): string | undefined {
  if (!isRecord(value)) return undefined;
  const inner = isRecord(value["error"])
    ? value["error"]
    : isRecord(value["response"])
      ? value["response"]["error"]
      : undefined;
  if (isRecord(inner)) return codeOf(inner);
  const { code, type } = value;
  const parts = [code, type].filter(
    (part): part is string | number => typeof part === "string" || typeof part === "number",
  );
  return parts.length === 0 ? undefined : parts.join(" ");
}

/** The provider's own sentence, else the whole body. */
function bodyText(body: string): string | undefined {
  const value = parsed(body);
  const error = isRecord(value)
    ? (value["error"] ?? (isRecord(value["response"]) ? value["response"]["error"] : undefined) ?? value)
    : undefined;
  if (isRecord(error) && typeof error["message"] === "string") return error["message"];
  if (typeof error === "string") return error;
  // A proxy's error page: its words without its markup.
  const plain = cutChars(body, 20_000)
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

function messageOf(one: Record<string, unknown>): string | undefined {
  return typeof one["message"] === "string" && one["message"] !== "" ? one["message"] : undefined;
}

function first<T>(
  chain: readonly Record<string, unknown>[],
  get: (one: Record<string, unknown>) => T | undefined,
): T | undefined {
  for (const one of chain) {
    const value = get(one);
    if (value !== undefined) return value;
  }
  return undefined;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
