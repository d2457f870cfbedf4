/** The class of a provider's failure. Pure. */
import { isNetworkCode, passes } from "../contract/passing.ts";
import { CLOSED, type ErrorFacts } from "./error-facts.ts";
import type { ModelErrorClass } from "./model.ts";
import { namesEnd } from "./retry-after.ts";
import { isOverflowText, isRateLimitText, isSharedWindowText } from "./overflow.ts";

/**
 * The order matters: what the provider says is clearer than its status, and quota, rate and overflow share words.
 * Source: requirement 3; survey of durable engines, D5; survey of reliability, R30–R31, R40.
 * @param nearWindow whether the request is, by our count, about as large as the window
 * @param heard whether a part of the answer had arrived
 */
export function classOfError(facts: ErrorFacts, nearWindow = false, heard = false): ModelErrorClass {
  const { status, code, text, network } = facts;
  const said = `${code} ${text}`;
  if (facts.isFinal) return "rejected";
  if (isQuota(facts)) return "quota";
  if (sharesWindow(facts)) return nearWindow && !heard ? "overflow" : "unavailable";
  if (isOverflow(facts, nearWindow)) return "overflow";
  if (status !== 401 && USED_UP.test(said) && namesEnd(facts)) return "rate-limit";
  // 498 is Groq's: no capacity in the flex tier at the moment.
  if (status === 429 || status === 498) return "rate-limit";
  if (isRateLimitText(said) && status !== 401 && status !== 403) return "rate-limit";
  if (isInTheWay(facts)) return "unavailable";
  if (network !== undefined) return network === CLOSED || isNetworkCode(network) ? "unavailable" : "rejected";
  if (/ERR_INVALID_URL|Invalid URL|Failed to parse URL/.test(said)) return "not-found";
  if (facts.malformed) return "malformed";
  // Groq: the model wrote a call that its server cannot read; the next try may be better.
  if (/tool_use_failed/.test(said)) return "malformed";
  if (needsJinja(facts) || LOCAL_REFUSAL.test(text) || isAboutRequest(facts)) return "rejected";
  if (/\bmodel_not_found\b|unexpected endpoint or method|model not exist|is not a valid model id/i.test(said))
    return "not-found";
  return status === undefined ? classOfCode(code, said) : classOfStatus(status, facts);
}

/** Whether the window may be full of other requests. */
export function sharesWindow({ text, windowTokens }: ErrorFacts): boolean {
  return windowTokens === undefined && isSharedWindowText(text);
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
export function needsJinja({ text }: ErrorFacts): boolean {
  return /requires? --jinja/i.test(text);
}

/** Texts and codes of moderation. Source: OpenRouter's errors documentation; the official schema's ResponseErrorCode. */
function isPolicy(said: string): boolean {
  return /moderation|flagged|\bpolicy\b|_policy|usage polic|content_filter|safety|prohibited_content/i.test(
    said,
  );
}

/** An error in mid-stream has a code and no status. Source: the codes of OpenAI's and the types of Anthropic's documentation. */
function classOfCode(code: string, said: string): ModelErrorClass {
  if (/authentication_error|permission_error|invalid_api_key|PERMISSION_DENIED|UNAUTHENTICATED/.test(code))
    return "credentials";
  if (/not_found/i.test(code)) return "not-found";
  if (/invalid_|INVALID_ARGUMENT|unsupported_|(?:^| )image_|empty_image/.test(code) || isPolicy(code))
    return "rejected";
  // Without a code the provider refuses nothing: its words are shown, and the request is sent again.
  return /^(error)?$/.test(code) || passes.modelWords(said) ? "unavailable" : "rejected";
}
