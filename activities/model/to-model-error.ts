/** Turns whatever the SDK or the network throws into a ModelError, with its class and a message that helps. */
import type { Api, Provider } from "../config/model-target.ts";
import { shorten } from "../text/cut.ts";
import { isNetworkCode, passes, theirWords } from "../contract/errors.ts";
import { readErrorFacts, type ErrorFacts, CLOSED } from "./error-facts.ts";
import { ModelError, type ModelErrorClass } from "./model.ts";
import { windowInText, isOverflowText, isRateLimitText, isSharedWindowText } from "./overflow.ts";
import { retryAfterMs, namesEnd } from "./retry-after.ts";

const MAX_MESSAGE_CHARS = 1_000;

export interface ErrorContext {
  readonly model: string;
  /** Its name on the wire. */
  readonly modelName: string;
  readonly api: Api;
  readonly provider: Provider;
  /** Who asks in place of a key: `providers.bedrock (aws-bedrock)`. */
  readonly identity?: string | undefined;
  /** Whether the request is, by our count, about as large as the model's window. */
  readonly nearWindow?: boolean | undefined;
  /** Whether a part of an answer had arrived before. */
  readonly heard?: boolean | undefined;
  /** Removes secrets from a text. */
  readonly mask: (text: string) => string;
  readonly now: number;
}

/** @param error anything; a ModelError is returned as it is */
export function toModelError(error: unknown, context: ErrorContext): ModelError {
  if (error instanceof ModelError) return error;
  const facts = readErrorFacts(error);
  const kind = classOfError(facts, context.nearWindow, context.heard);
  const wait = retryAfterMs({ ...facts, isRateLimit: kind === "rate-limit" }, context.now);
  return new ModelError(wording(kind, facts, context), {
    class: kind,
    status: facts.status,
    retryAfterMs: wait,
    servedWindow: kind === "overflow" ? (facts.servedWindow ?? windowInText(facts.text)) : undefined,
    heard: context.heard,
    mayBeOverflow: kind === "unavailable" && sharesWindow(facts),
    cause: error,
  });
}

function wording(kind: ModelErrorClass, facts: ErrorFacts, context: ErrorContext): string {
  const { model, api, mask } = context;
  const { provider, key, address } = settingsOf(context);
  const status = facts.status === undefined ? "" : ` (${facts.status})`;
  const reason = theirWords(mask(facts.text).toWellFormed()) || (facts.network ?? "no reason was given");
  // A sentence of ours follows.
  const clause = reason.replace(/\.$/, "");
  const text: Record<ModelErrorClass, string> = {
    overflow: `The request does not fit the context window of ${model}${status}: ${reason}`,
    "rate-limit": `${provider} limits the rate of requests${status}: ${reason}`,
    unavailable: sharesWindow(facts)
      ? `${provider} has no room for the request at the moment${status}: ${clause}. The requests that it answers at once share one window. If this continues, give it a larger one or fewer slots (llama.cpp: --ctx-size, --parallel).`
      : `${context.heard === true ? `The answer of ${provider} broke off` : `${provider} could not be reached or did not answer`}${status}: ${clause}. If this continues, check ${address} and the network.`,
    silent: reason,
    "too-long": reason,
    malformed: `${provider} sent an answer that cannot be read${status}: ${reason}`,
    rejected: rejected(provider, `${status}: ${reason}`, facts),
    quota: `The account at ${provider} has no credit left${status}: ${clause}. Add credit, or set ${key} to a key of another account, and resume.`,
    credentials: `${provider} refuses the credentials${status}: ${clause}. ${
      context.identity === undefined
        ? `Set ${key} to a valid key for ${address}`
        : `Give the identity of ${context.identity} in the worker's policy file the right to use ${context.modelName}`
    } and resume.`,
    "not-found": `${provider} does not know what was asked for${status}: ${clause}. Check the model's name (${askedFor(context)}) and ${address}${
      api === "responses"
        ? `; if the server supports only chat completions, set models.${model}.api: chat in longhaul.yaml`
        : ""
    }.`,
  };
  return shorten(mask(text[kind]), MAX_MESSAGE_CHARS);
}

/** A server behind OPENAI_BASE_URL is asked for the name as it was written, with its prefix. */
function askedFor({ model, modelName, provider }: ErrorContext): string {
  if (modelName !== model) return `${model}, asked for as ${modelName}`;
  const bare = modelName.replace(/^openai\//, "");
  return bare === modelName || provider.name !== "openai"
    ? model
    : `asked for as ${modelName}; --model ${bare} asks for ${bare}`;
}

/** The settings that decide which server is asked, and with which key. */
function settingsOf({ provider }: ErrorContext) {
  const { name, keyEnv, headersEnv = {}, baseUrl, baseUrlEnv } = provider;
  return {
    provider: name,
    key: keyEnv ?? Object.values(headersEnv)[0] ?? `the variable that providers.${name}.keyEnv names`,
    address: (baseUrl === undefined ? baseUrlEnv : undefined) ?? `providers.${name}.baseUrl`,
  };
}

function rejected(provider: string, reason: string, facts: ErrorFacts): string {
  if (needsJinja(facts))
    return `${provider} cannot call tools as it was started${reason}. Start llama-server with --jinja.`;
  if (facts.isPage && (facts.status === 403 || facts.status === 407))
    return `A proxy or firewall in front of ${provider} refuses the request, not ${provider} itself${reason}. Ask whoever runs the network to let it through.`;
  // A certificate that is not trusted, or what nobody knows: the server did not say no.
  if (facts.status === undefined && (facts.network !== undefined || facts.code === ""))
    return `The request to ${provider} failed${reason}`;
  return `${provider} refuses the request${reason}`;
}

/**
 * The class of a provider's failure. The order matters: what the provider says is clearer than its status, and quota, rate and overflow share words.
 * Source: requirement 3. Temporal retries by this class; the providers' libraries do not retry.
 * @param nearWindow whether the request is, by our count, about as large as the window
 * @param heard whether a part of the answer had arrived
 */
export function classOfError(facts: ErrorFacts, nearWindow = false, heard = false): ModelErrorClass {
  const { status, code, text, network } = facts;
  const codeAndText = `${code} ${text}`;
  if (facts.isFinal) return "rejected";
  if (isQuota(facts)) return "quota";
  if (sharesWindow(facts)) return nearWindow && !heard ? "overflow" : "unavailable";
  if (isOverflow(facts, nearWindow)) return "overflow";
  if (status !== 401 && USED_UP.test(codeAndText) && namesEnd(facts)) return "rate-limit";
  // 498 is Groq's: no capacity in the flex tier at the moment.
  if (status === 429 || status === 498) return "rate-limit";
  if (isRateLimitText(codeAndText) && status !== 401 && status !== 403) return "rate-limit";
  if (isInTheWay(facts)) return "unavailable";
  if (network !== undefined) return network === CLOSED || isNetworkCode(network) ? "unavailable" : "rejected";
  if (/ERR_INVALID_URL|Invalid URL|Failed to parse URL/.test(codeAndText)) return "not-found";
  if (facts.malformed) return "malformed";
  // Groq: the model wrote a call that its server cannot read; the next try may be better.
  if (/tool_use_failed/.test(codeAndText)) return "malformed";
  if (needsJinja(facts) || LOCAL_REFUSAL.test(text) || isAboutRequest(facts)) return "rejected";
  if (
    /\bmodel_not_found\b|unexpected endpoint or method|model not exist|is not a valid model id/i.test(
      codeAndText,
    )
  )
    return "not-found";
  return status === undefined ? classOfCode(code, codeAndText) : classOfStatus(status, facts);
}

/** Whether the window may be full of other requests. */
function sharesWindow({ text, servedWindow }: ErrorFacts): boolean {
  return servedWindow === undefined && isSharedWindowText(text);
}

function isOverflow({ status, code, text, isBodyless }: ErrorFacts, nearWindow: boolean): boolean {
  if (isOverflowText(`${code} ${text}`) || status === 413) return true;
  // Some servers (Cerebras, proxies) answer an overflow with an empty body.
  return status === 400 && isBodyless && nearWindow;
}

/** A page in place of an answer: a network to sign in to, a gateway that starts, a check of browsers that lets the next request pass. */
function isInTheWay({ isPage, status, text }: ErrorFacts): boolean {
  if (!isPage) return false;
  return (
    status === undefined ||
    (status === 403 && /just a moment|checking your browser|cf-chl|challenge-platform/i.test(text))
  );
}

/** The class by status, if the provider's text says nothing clearer. */
function classOfStatus(status: number, { isPage, code, text }: ErrorFacts): ModelErrorClass {
  if (status === 403 && (isPage || isPolicy(`${code} ${text}`))) return "rejected";
  if (status === 401 || status === 403 || status === 402) return "credentials";
  if (status === 404 || status === 405 || status === 501) return "not-found";
  return passes.model(status) ? "unavailable" : "rejected";
}

/**
 * Servers that answer 500 although the request itself is at fault, so that a retry would be refused too: its roles, its template,
 * its provider's policy. Source: public reports; templates of Mistral, Gemma and Llama raise these words.
 */
function isAboutRequest({ status = 0, text }: ErrorFacts): boolean {
  return (
    status >= 500 &&
    /roles must alternate|conversation roles|only (?:user|assistant|system|tool)[^.]{0,40} roles? (?:are|is) supported|role[^.]{0,20} (?:is )?not supported|after the optional system message|must be at the beginning|unknown (?:message )?role|invalid role|(?:violates?|against|blocked by)[^.]{0,40}polic(?:y|ies)|data policy|content policy|templateerror/i.test(
      text,
    )
  );
}

/** Refusals by llama.cpp, Ollama and LM Studio that come with 500 or mid-stream, and that a retry would repeat. */
const LOCAL_REFUSAL =
  /jinja exception|images? input is not supported|required for image input|failed to process inputs|unsupported content part type|does not support images|JSON schema conversion failed|failed to parse grammar|unable to generate parser/i;

/**
 * Whether the account is used up: providers answer 429, 400, 402 or 403, and waiting does not help. Google says "exceeded
 * your current quota" of its free tier too, with the time after which requests are accepted again.
 */
function isQuota(facts: ErrorFacts): boolean {
  const { status, code, text } = facts;
  if (/insufficient_quota|exceeded_current_quota|billing_hard_limit/i.test(code)) return true;
  if (namesEnd(facts)) return false;
  return (
    status === 402 ||
    /insufficient_quota|exceeded your current quota|billing hard limit|credit balance is too low|insufficient (?:account )?(?:balance|credits?|funds)|(?:not enough|out of|no remaining) (?:balance|credits?|funds)|requires more credits|余额不足|账户余额|账号欠费|欠费|in arrears|overdue[- ](?:payment|balance|bill)/i.test(
      text,
    )
  );
}

/** A limit of a plan, in words: it is one that passes if they say when. Some services answer 400, 402 or 403 to it. */
const USED_UP =
  /\b(?:limit|quota|allowance|usage|credits?)\b.{0,60}\b(?:reached|exceeded|exhausted|used up|hit|resets?)\b|\b(?:reached|exceeded|exhausted|used up|hit)\b.{0,60}\b(?:limit|quota|allowance)\b|usage_limit_reached|上限|限额|额度/is;

/** llama.cpp answers calls with 500 if it was started without its template engine. */
function needsJinja({ text }: ErrorFacts): boolean {
  return /requires? --jinja/i.test(text);
}

/** Texts and codes of moderation. Source: OpenRouter's errors documentation; the official schema's ResponseErrorCode. */
function isPolicy(message: string): boolean {
  return /moderation|flagged|\bpolicy\b|_policy|usage polic|content_filter|safety|prohibited_content/i.test(
    message,
  );
}

/** An error in mid-stream has a code and no status. Source: the codes of OpenAI's and the types of Anthropic's documentation. */
function classOfCode(code: string, message: string): ModelErrorClass {
  if (/authentication_error|permission_error|invalid_api_key|PERMISSION_DENIED|UNAUTHENTICATED/.test(code))
    return "credentials";
  if (/not_found/i.test(code)) return "not-found";
  if (/invalid_|INVALID_ARGUMENT|unsupported_|(?:^| )image_|empty_image/.test(code) || isPolicy(code))
    return "rejected";
  // Without a code the provider refuses nothing: its words are shown, and the request is sent again.
  return /^(error)?$/.test(code) || passes.modelWords(message) ? "unavailable" : "rejected";
}
