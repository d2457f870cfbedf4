/** Who did something, as reported by that person's client: a label for others, not proof. Pure. */
import { cleanText } from "./clean-text.ts";
import { cutChars } from "./cut-text.ts";

/** Same limit as the name of the person who answers a question. */
const MAX_NAME_CHARS = 100;

/** One clean line of at most 100 characters; undefined if there is nothing to show. */
export function personName(name: unknown): string | undefined {
  if (typeof name !== "string") return undefined;
  return cutChars(cleanText(name).replace(/\s+/g, " ").trim(), MAX_NAME_CHARS) || undefined;
}

/** A message's sender as a field that is absent if unknown. */
export function senderOf(message: unknown): { readonly by?: string } {
  if (typeof message !== "object" || message === null || !("by" in message)) return {};
  const by = personName(message.by);
  return by === undefined ? {} : { by };
}
