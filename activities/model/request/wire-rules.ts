/** The rules for requests to a server: those of its wire, overridden by the provider's. */
import type { Api, ModelTarget, WireOptions } from "../../config/model-target.ts";

type Settled = { readonly [Name in keyof WireOptions]-?: Exclude<WireOptions[Name], undefined> };

export interface WireRules extends Settled {
  /** Keywords that a schema may use: all of JSON Schema, or the provider's subset of it. */
  readonly schemas: "full" | "google" | "moonshot";
  /** Calls need Google's signature of the thought behind them. */
  readonly thoughtSignatures: boolean;
  /** Calls without their reasoning are refused, whichever model made them. */
  readonly needsReasoning: boolean;
}

/** Rules that most wires share. */
const COMMON: WireRules = {
  sendReasoning: "native",
  callIds: "safe",
  filesInResults: true,
  userAfterResults: true,
  endsWithAssistant: false,
  toolChoiceNone: true,
  cacheMarks: false,
  // Compatible servers refuse parameters they do not know.
  cacheKey: false,
  maxTokensField: "max_tokens",
  systemRole: "system",
  callsInText: false,
  schemas: "full",
  // On Google's own wire the SDK itself inserts the stand-in for a missing signature.
  thoughtSignatures: false,
  needsReasoning: false,
};

const WIRES: Readonly<Record<Api, WireRules>> = {
  responses: { ...COMMON, cacheKey: true },
  chat: { ...COMMON, sendReasoning: "field", callIds: "any", filesInResults: false },
  messages: { ...COMMON, cacheMarks: true },
  gemini: { ...COMMON, callIds: "any" },
};

/**
 * How each wire forbids tool calls. Set in the body: if the SDK knew, it would discard a whole answer that calls a
 * tool anyway.
 */
export const NO_CALLS: Readonly<Record<Api, Readonly<Record<string, unknown>>>> = {
  responses: { tool_choice: "none" },
  chat: { tool_choice: "none" },
  messages: { tool_choice: { type: "none" } },
  gemini: { toolConfig: { functionCallingConfig: { mode: "NONE" } } },
};

/** OpenAI's models that reason, by name: on chat they refuse `system` and `max_tokens`. */
const OPENAI_REASONERS = /^(openai\/)?(o\d|gpt-(?!3|4))/;

export function rulesOf(target: ModelTarget): WireRules {
  const { api, provider, cache } = target;
  const name = target.modelName;
  // Kimi's own service calls a model `k3`.
  const fullName = `${target.model} ${name}`;
  const isGemini = api === "chat" && /gemini/i.test(name);
  const isReasoner =
    api === "chat" &&
    (provider.name === "openai" || provider.name === "azure") &&
    (target.thinks ?? OPENAI_REASONERS.test(name));
  const rules: WireRules = {
    ...WIRES[api],
    ...(isReasoner ? { maxTokensField: "max_completion_tokens", systemRole: "developer" } : {}),
    ...(isGemini ? { schemas: "google", thoughtSignatures: /gemini-([3-9]|\d\d)/i.test(name) } : {}),
    ...(/kimi|moonshot/i.test(fullName) ? { schemas: "moonshot" } : {}),
    needsReasoning: api === "chat" && target.thinks !== false && /deepseek|kimi/i.test(fullName),
    ...(provider.options as Partial<Settled> | undefined),
  };
  // Marks are Anthropic's: behind a router only Claude's requests carry them.
  const marks = rules.cacheMarks && (api === "messages" || /claude/i.test(name));
  return { ...rules, cacheMarks: marks && cache !== false, cacheKey: rules.cacheKey && cache !== false };
}

/** Whether the model reasons before it answers, as far as configuration or catalogue say. */
export function isThinking({ thinks, reasoning }: ModelTarget): boolean {
  if (reasoning?.effort === "none") return false;
  return thinks ?? (reasoning?.effort !== undefined || reasoning?.summary !== undefined);
}

/** Indexes of the messages that get cache marks: the last two that are not the assistant's. */
export function markedTurns(messages: readonly { readonly role: string }[]): ReadonlySet<number> {
  const turns = messages.flatMap(({ role }, index) => (role === "user" || role === "tool" ? [index] : []));
  return new Set(turns.slice(-2));
}

/** How long Anthropic's cache should keep a mark; its own default, five minutes, is not sent. */
export function cacheMark({ cache }: ModelTarget): { readonly type: "ephemeral"; readonly ttl?: "1h" } {
  return { type: "ephemeral", ttl: cache === undefined || cache === "5m" ? undefined : "1h" };
}
