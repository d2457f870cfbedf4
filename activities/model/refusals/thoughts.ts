/**
 * What an answer carries for its provider alone (encrypted thoughts, signatures, names of items) and the provider cannot read any
 * more, since the key is another account's or a gateway asked another one: it is asked again without.
 */
import { shorten } from "../../contract/cut-text.ts";
import type { Message } from "../../contract/message.ts";
import type { Endpoint } from "../endpoint.ts";
import { readErrorFacts } from "../error-facts.ts";
import { isRefusal, type ModelAnswer, type ModelError, type ModelRequest } from "../model.ts";
import { type Ask, RefusalMemory, type Refusals } from "./memory.ts";

/** Of the provider's words. */
const MAX_WHY_CHARS = 300;

type Answer = Extract<Message, { readonly role: "assistant" }>;

export class ThoughtRefusals implements Refusals {
  readonly #memory = new RefusalMemory();

  async ask(request: ModelRequest, endpoint: Endpoint, ask: Ask): Promise<ModelAnswer> {
    const isRefused = (answer: Answer) => this.#memory.why(endpoint, dataOf(answer)) !== undefined;
    const messages = this.#memory.isEmpty ? request.messages : without(request.messages, isRefused);
    try {
      return await ask({ ...request, messages });
    } catch (error) {
      const given = messages.filter((message): message is Answer => hasData(message));
      if (given.length === 0 || !isAboutThoughts(error)) throw error;
      const answer = await ask({ ...request, messages: without(messages, () => true) });
      const why = shorten(error.message, MAX_WHY_CHARS);
      for (const one of given) this.#memory.add(endpoint, dataOf(one), why);
      return { ...answer, refusedThoughts: why };
    }
  }
}

const hasData = (message: Message): boolean =>
  message.role === "assistant" &&
  message.content.some(({ type, providerOptions }) => type === "reasoning" || providerOptions !== undefined);

const dataOf = ({ content }: Answer): string =>
  JSON.stringify(content.map(({ providerOptions }) => providerOptions));

function without(messages: readonly Message[], isRefused: (answer: Answer) => boolean): Message[] {
  return messages.map((message) => {
    if (message.role !== "assistant" || !hasData(message) || !isRefused(message)) return message;
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
