/** Turns whatever the SDK or the network throws into a ModelError, with its class and a message that helps. Pure. */
import type { Api, Provider } from "../config/model-target.ts";
import { shorten } from "../contract/cut-text.ts";
import { theirWords } from "../contract/reason-of.ts";
import { classOfError, needsJinja, sharesWindow } from "./error-class.ts";
import { readErrorFacts, type ErrorFacts } from "./error-facts.ts";
import { ModelError, type ModelErrorClass } from "./model.ts";
import { windowInText } from "./overflow.ts";
import { retryAfterMs } from "./retry-after.ts";

const MAX_MESSAGE_CHARS = 1_000;

export interface ErrorContext {
  readonly model: string;
  /** Its name on the wire. */
  readonly modelName?: string | undefined;
  readonly api: Api;
  /** Absent in sessions older than providers. */
  readonly provider?: Provider | undefined;
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
    ...(facts.status === undefined ? {} : { status: facts.status }),
    ...(wait === undefined ? {} : { retryAfterMs: wait }),
    ...(kind === "overflow" ? { windowTokens: facts.windowTokens ?? windowInText(facts.text) } : {}),
    heard: context.heard,
    mayBeOverflow: kind === "unavailable" && sharesWindow(facts),
    cause: error,
  });
}

function wording(kind: ModelErrorClass, facts: ErrorFacts, context: ErrorContext): string {
  const { model, api, mask } = context;
  const { provider, key, address } = settingsOf(context);
  const status = facts.status === undefined ? "" : ` (${facts.status})`;
  const said = theirWords(mask(facts.text).toWellFormed()) || (facts.network ?? "no reason was given");
  // A sentence of ours follows.
  const clause = said.replace(/\.$/, "");
  const text: Record<ModelErrorClass, string> = {
    overflow: `The request does not fit the context window of ${model}${status}: ${said}`,
    "rate-limit": `${provider} limits the rate of requests${status}: ${said}`,
    unavailable: sharesWindow(facts)
      ? `${provider} has no room for the request at the moment${status}: ${clause}. The requests that it answers at once share one window. If this continues, give it a larger one or fewer slots (llama.cpp: --ctx-size, --parallel).`
      : `${context.heard === true ? `The answer of ${provider} broke off` : `${provider} could not be reached or did not answer`}${status}: ${clause}. If this continues, check ${address} and the network.`,
    silent: said,
    "too-long": said,
    malformed: `${provider} sent an answer that cannot be read${status}: ${said}`,
    rejected: rejected(provider, `${status}: ${said}`, facts),
    quota: `The account at ${provider} has no credit left${status}: ${clause}. Add credit, or set ${key} to a key of another account, and resume.`,
    credentials: `${provider} refuses the credentials${status}: ${clause}. ${
      context.identity === undefined
        ? `Set ${key} to a valid key for ${address}`
        : `Give the identity of ${context.identity} in the worker's policy file the right to use ${context.modelName ?? model}`
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
function askedFor({ model, modelName = model, provider }: ErrorContext): string {
  if (modelName !== model) return `${model}, asked for as ${modelName}`;
  const bare = modelName.replace(/^openai\//, "");
  return bare === modelName || provider?.name !== "openai"
    ? model
    : `asked for as ${modelName}; --model ${bare} asks for ${bare}`;
}

/** The settings that decide which server is asked, and with which key. */
function settingsOf({ model, provider }: ErrorContext) {
  if (provider === undefined)
    return { provider: model.split("/")[0] ?? model, key: "OPENAI_API_KEY", address: "OPENAI_BASE_URL" };
  const { name, keyEnv, headersEnv = {}, baseUrl, baseUrlEnv } = provider;
  return {
    provider: name,
    key: keyEnv ?? Object.values(headersEnv)[0] ?? `the variable that providers.${name}.keyEnv names`,
    address: (baseUrl === undefined ? baseUrlEnv : undefined) ?? `providers.${name}.baseUrl`,
  };
}

function rejected(provider: string, said: string, facts: ErrorFacts): string {
  if (needsJinja(facts))
    return `${provider} cannot call tools as it was started${said}. Start llama-server with --jinja.`;
  if (facts.isPage && (facts.status === 403 || facts.status === 407))
    return `A proxy or firewall in front of ${provider} refuses the request, not ${provider} itself${said}. Ask whoever runs the network to let it through.`;
  // A certificate that is not trusted, or what nobody knows: the server did not say no.
  if (facts.status === undefined && (facts.network !== undefined || facts.code === ""))
    return `The request to ${provider} failed${said}`;
  return `${provider} refuses the request${said}`;
}
