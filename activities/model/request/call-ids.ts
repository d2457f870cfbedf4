/** Call ids in the form that a server accepts; the stored ones never change. Pure. */
import { createHash } from "node:crypto";
import { cutChars } from "../../contract/cut-text.ts";
import type { Message } from "../../contract/message.ts";
import type { WireRules } from "./wire-rules.ts";

/** Source: OpenAI refuses longer ones on both wires. */
const MAX_CHARS = 64;

type Form = WireRules["callIds"];

/** @returns the id to send for a stored one: the same in every request, and never shared by two */
export function callIds(messages: readonly Message[], form: Form): (stored: string) => string {
  const sent = new Map<string, string>();
  const taken = new Set<string>();
  for (const { content } of messages) {
    for (const part of content) {
      if (!("toolCallId" in part) || sent.has(part.toolCallId)) continue;
      let id = inForm(part.toolCallId, form);
      for (let salt = 1; taken.has(id); salt += 1) id = digest(`${part.toolCallId} ${salt}`, form);
      sent.set(part.toolCallId, id);
      taken.add(id);
    }
  }
  return (stored) => sent.get(stored) ?? stored;
}

function inForm(id: string, form: Form): string {
  if (form === "nine") return /^[a-zA-Z0-9]{9}$/.test(id) ? id : digest(id, form);
  if (id.length > MAX_CHARS) return digest(id, form);
  return form === "safe" ? id.replaceAll(/[^a-zA-Z0-9_-]/g, "_") : id;
}

function digest(text: string, form: Form): string {
  return cutChars(createHash("sha256").update(text).digest("hex"), form === "nine" ? 9 : 32);
}
