/** Which reasoning is sent back: only to the model that made it, in its wire's form. */
import type { ModelTarget } from "../../config/model-target.ts";
import type { AssistantPart, ProviderData, ReasoningPart } from "../../contract/message.ts";
import type { WireRules } from "./wire-rules.ts";

/** Key under which we note the model that made a part: provider data is only valid for that model. */
export const ORIGIN_KEY = "longhaul";
/** Where data of a compatible chat server is kept; the SDK knows the adapter by this name. */
export const COMPATIBLE_KEY = "compatible";
/** Of thoughts that came in tags within the text: no server takes them back in a field, and templates leave them out. */
export const TAGGED: ProviderData = { [COMPATIBLE_KEY]: { tagged: true } };

export type ReasoningTarget = Pick<ModelTarget, "model" | "api" | "reasoning">;

/** The model that made a part, if noted. */
function originOf({ providerOptions }: Pick<AssistantPart, "providerOptions">): string | undefined {
  const model = providerOptions?.[ORIGIN_KEY]?.["model"];
  return typeof model === "string" ? model : undefined;
}

/** What a reasoning part carries for the Responses wire. */
function reasoningFacts(part: Pick<ReasoningPart, "providerOptions">): {
  readonly itemId: string | undefined;
  readonly encrypted: boolean;
} {
  const itemId = part.providerOptions?.["openai"]?.["itemId"];
  return {
    itemId: typeof itemId === "string" ? itemId : undefined,
    encrypted: isFilled(part.providerOptions?.["openai"]?.["reasoningEncryptedContent"]),
  };
}

/** Whether a part without text must be kept because its provider needs its data back. */
export function carriesData({ providerOptions }: Pick<ReasoningPart, "providerOptions">): boolean {
  return (
    reasoningFacts(providerOptions ? { providerOptions } : {}).encrypted ||
    isFilled(providerOptions?.["anthropic"]?.["signature"]) ||
    isFilled(providerOptions?.["anthropic"]?.["redactedData"]) ||
    isFilled(providerOptions?.["google"]?.["thoughtSignature"]) ||
    Array.isArray(providerOptions?.[COMPATIBLE_KEY]?.["details"])
  );
}

/** How each part of an answer's reasoning is sent back: as it is, as text (another model's), or not at all. */
export function reasoningToSend(
  parts: readonly AssistantPart[],
  target: ReasoningTarget,
  rules: WireRules,
): (part: ReasoningPart) => "native" | "text" | "none" {
  const send = target.reasoning?.send ?? "keep";
  const native = send === "drop" ? new Set<AssistantPart>() : usable(parts, target, rules);
  return (part) => {
    if (native.has(part)) return "native";
    const isForeign = originOf(part) !== target.model;
    return send === "text" && isForeign && part.text.trim() !== "" ? "text" : "none";
  };
}

/**
 * Reasoning is sent back only to the model that made it, and only if followed by its output: anything else is refused
 * ("Item not found", "without its required following item", "Invalid signature in thinking block").
 */
function usable(
  parts: readonly AssistantPart[],
  target: ReasoningTarget,
  rules: WireRules,
): Set<AssistantPart> {
  const last = parts.findLastIndex(
    (part) => part.type !== "reasoning" && !(part.type === "text" && isBlank(part.text)),
  );
  const own = parts.filter(
    (part, index): part is ReasoningPart =>
      part.type === "reasoning" && index < last && originOf(part) === target.model,
  );
  if (rules.sendReasoning === "none") return new Set();
  // Reasoning that the same model made on another wire carries that wire's data; its chat wire may have no field for
  // it.
  if (target.api === "chat") return new Set(rules.sendReasoning === "field" ? own.filter(isOfChat) : []);
  if (target.api === "responses") return new Set(withEncryptedItem(own));
  return new Set(own.filter(carriesData));
}

const OTHER_WIRES = ["openai", "anthropic", "google"];

function isOfChat({ providerOptions = {} }: ReasoningPart): boolean {
  const isTagged = providerOptions[COMPATIBLE_KEY]?.["tagged"] === true;
  return !isTagged && !OTHER_WIRES.some((name) => providerOptions[name] !== undefined);
}

/** An item may have several parts, of which only the last carries its encrypted content. */
function withEncryptedItem(parts: readonly ReasoningPart[]): ReasoningPart[] {
  const items = new Set(
    parts.map(reasoningFacts).flatMap(({ encrypted, itemId }) => (encrypted ? [itemId ?? ""] : [])),
  );
  return parts.filter((part) => {
    const { itemId, encrypted } = reasoningFacts(part);
    return encrypted || (itemId !== undefined && items.has(itemId));
  });
}

/** The fields of a chat message that hold its reasoning, by the name under which they came. */
export function reasoningFields(parts: readonly ReasoningPart[]): Record<string, unknown> {
  const text = parts.map((part) => part.text).join("");
  const compatibleData = parts.map((part) => part.providerOptions?.[COMPATIBLE_KEY]);
  const details = compatibleData.flatMap((data) =>
    Array.isArray(data?.["details"]) ? (data["details"] as unknown[]) : [],
  );
  const named = compatibleData.map((data) => data?.["field"]).find((field) => typeof field === "string");
  return {
    ...(text === "" ? {} : { [named ?? "reasoning_content"]: text }),
    ...(details.length === 0 ? {} : { reasoning_details: details }),
  };
}

/** A part's provider data for a target; data of other models is left out. */
export function dataFor(
  { providerOptions }: Pick<AssistantPart, "providerOptions">,
  { model }: ReasoningTarget,
): ProviderData | undefined {
  const origin = originOf(providerOptions ? { providerOptions } : {});
  return origin === undefined || origin === model ? providerOptions : undefined;
}

/** Anthropic refuses a request that contains a text of only blanks. */
export const isBlank = (text: string): boolean => text.trim() === "";

function isFilled(value: unknown): boolean {
  return typeof value === "string" && value !== "";
}
