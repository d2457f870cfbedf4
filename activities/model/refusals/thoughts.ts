/** Reasoning that a provider refuses: what it can no longer read of its earlier answers, and a summary that it does not give. */
import { shorten } from "../../text/cut.ts";
import type { Message } from "../../contract/message.ts";
import type { Endpoint } from "../endpoint.ts";
import { readErrorFacts } from "../error-facts.ts";
import {
  isRefusal,
  type ModelAnswer,
  type ModelError,
  type ModelRequest,
  type RefusedPart,
} from "../model.ts";
import { summaryOf } from "../wires/wire.ts";
import { type Ask, RefusalMemory, type Refusals } from "./refusals.ts";

/** Longest quote of the provider's message. */
const MAX_WHY_CHARS = 300;

type Answer = Extract<Message, { readonly role: "assistant" }>;

/**
 * Provider data in answers (encrypted reasoning, signatures, item ids) that the provider can no longer read, because the key is
 * another account's or a gateway asked another provider: the request is repeated without it.
 */
export class ThoughtRefusals implements Refusals {
  readonly #memory = new RefusalMemory();

  async ask(request: ModelRequest, endpoint: Endpoint, ask: Ask): Promise<ModelAnswer> {
    const { messages } = request;
    const answers = messages.filter(hasData);
    const refused = new Map<Message, string>();
    for (const answer of this.#memory.isEmpty ? [] : answers) {
      const why = this.#memory.why(endpoint, dataOf(answer));
      if (why !== undefined) refused.set(answer, why);
    }
    try {
      const modelAnswer = await ask({ ...request, messages: without(messages, refused) });
      const [why] = refused.values();
      return why === undefined ? modelAnswer : leftOut(modelAnswer, { why, isNew: false });
    } catch (error) {
      if (refused.size === answers.length || !isAboutThoughts(error)) throw error;
      const why = shorten(error.message, MAX_WHY_CHARS);
      const modelAnswer = await ask({ ...request, messages: without(messages, new Set(answers)) });
      for (const answer of answers) this.#memory.add(endpoint, dataOf(answer), why);
      return leftOut(modelAnswer, { why, isNew: true });
    }
  }
}

const leftOut = (answer: ModelAnswer, of: Pick<RefusedPart, "why" | "isNew">): ModelAnswer => ({
  ...answer,
  refusedParts: [...(answer.refusedParts ?? []), { mediaType: "thoughts", ...of }],
});

const hasData = (message: Message): message is Answer =>
  message.role === "assistant" &&
  message.content.some(({ type, providerOptions }) => type === "reasoning" || providerOptions !== undefined);

const dataOf = ({ content }: Answer): string =>
  JSON.stringify(content.map(({ providerOptions }) => providerOptions));

function without(messages: readonly Message[], refused: { has(message: Message): boolean }): Message[] {
  return messages.map((message) => {
    if (message.role !== "assistant" || !refused.has(message)) return message;
    const content = message.content
      .filter(({ type }) => type !== "reasoning")
      .map(({ providerOptions: _unreadable, ...part }) => part);
    return { role: "assistant", content };
  });
}

/**
 * Source: public reports. OpenAI: `invalid_encrypted_content`, "Item 'rs_…' of type 'reasoning' was provided without its required
 * following item", "Item with id 'rs_…' not found" (404); Anthropic: "Invalid `signature` in `thinking` block", "`thinking` blocks
 * … cannot be modified"; Google: "Thought signature is not valid".
 */
function isAboutThoughts(error: unknown): error is ModelError {
  if (!isRefusal(error)) return false;
  const { text, code } = readErrorFacts(error.cause);
  return /encrypted.?content|signature|\b(?:rs|fc|msg)_\w+|\bthinking\b|'reasoning'/i.test(`${text} ${code}`);
}

/** Source: OpenAI's refusal, "If you just verified, it can take up to 15 minutes for access to propagate." */
const KEPT_MS = 15 * 60_000;

/** Providers that do not show a model's reasoning: asked again without a summary, which is then not requested for a while. */
export class SummaryRefusals implements Refusals {
  readonly #memory = new RefusalMemory(KEPT_MS);

  async ask(request: ModelRequest, endpoint: Endpoint, ask: Ask): Promise<ModelAnswer> {
    if (summaryOf(request.target) === null) return ask(request);
    if (this.#memory.why(endpoint, "summary") === undefined) {
      try {
        return await ask(request);
      } catch (error) {
        if (!isRefusedSummary(error)) throw error;
        this.#memory.add(endpoint, "summary", error.message);
      }
    }
    return { ...(await ask(withoutSummary(request))), summaryRefused: true };
  }
}

function withoutSummary({ target, ...request }: ModelRequest): ModelRequest {
  return { ...request, target: { ...target, reasoning: { ...target.reasoning, summary: "none" } } };
}

/** OpenAI's words to organisations that are not verified; routers pass the words on and lose the parameter's name. */
function isRefusedSummary(error: unknown): error is ModelError {
  if (!isRefusal(error)) return false;
  const { param, text } = readErrorFacts(error.cause);
  return param === "reasoning.summary" || /verified to generate reasoning summar/i.test(text);
}
