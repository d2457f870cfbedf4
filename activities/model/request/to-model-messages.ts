/** Our transcript as the AI SDK's messages, in a form that the target server accepts. Pure. */
import type { ModelMessage } from "ai";
import type { AssistantPart, Message, ReasoningPart, ToolResultPart } from "../../contract/message.ts";
import type { ModelTarget } from "../../config/model-target.ts";
import { callIds } from "./call-ids.ts";
import { COMPATIBLE_KEY, dataFor, isBlank, reasoningFields, reasoningToSend } from "./reasoning.ts";
import { safeToolName, toToolMessages, toUserPart } from "./results.ts";
import { cacheMark, markedTurns, rulesOf, type WireRules } from "./wire-rules.ts";

export type RequestTarget = Pick<
  ModelTarget,
  "model" | "modelName" | "api" | "provider" | "thinks" | "reasoning" | "cache" | "imageDetail"
>;
type SdkAssistant = Extract<ModelMessage, { role: "assistant" }>;

/** Replaces empty text. */
const EMPTY = { type: "text", text: "(empty)" } as const;
/** User message added if a request would otherwise end with an assistant message. */
const GO_ON = "Continue.";
/** Assistant message added if the user may not speak right after results. */
const SEEN = "Understood.";
/** Google's stand-in for the signature of a call that another model made. Source: its guide on thought signatures. */
const NO_SIGNATURE = "skip_thought_signature_validator";

/** @param messages well-formed: each call has its result, files carry `data:` URLs */
export function toModelMessages(messages: readonly Message[], target: RequestTarget): ModelMessage[] {
  const rules = rulesOf(target as ModelTarget);
  const idOf = callIds(messages, rules.callIds);
  const sent: ModelMessage[] = [];
  for (let index = 0; index < messages.length; index += 1) {
    const message = messages[index];
    if (message?.role === "user") {
      const said = message.content.filter((part) => part.type !== "text" || !isBlank(part.text));
      const content = (said.length === 0 ? [EMPTY] : said).map((part) =>
        toUserPart(part, target.imageDetail),
      );
      sent.push({ role: "user", content });
    }
    if (message?.role === "assistant") {
      const parts = [...message.content];
      for (let next = messages[index + 1]; next?.role === "assistant"; next = messages[index + 1]) {
        parts.push(...next.content);
        index += 1;
      }
      sent.push(...toAssistant(parts, target, rules, idOf));
    }
    if (message?.role === "tool") {
      const results: ToolResultPart[] = [...message.content];
      for (let next = messages[index + 1]; next?.role === "tool"; next = messages[index + 1]) {
        results.push(...next.content);
        index += 1;
      }
      sent.push(...toToolMessages(results, rules, idOf, target.imageDetail));
    }
  }
  const ordered = inOrder(sent, rules);
  return rules.cacheMarks && target.api === "messages" ? marked(ordered, target as ModelTarget) : ordered;
}

function toAssistant(
  parts: readonly AssistantPart[],
  target: RequestTarget,
  rules: WireRules,
  idOf: (stored: string) => string,
): ModelMessage[] {
  const fate = reasoningToSend(parts, target, rules);
  const fields: ReasoningPart[] = [];
  const content: AssistantPart[] = [];
  for (const part of parts) {
    const { providerOptions: _, ...plain } = part;
    const data = dataFor(part, target);
    const kept = data === undefined ? {} : { providerOptions: data };
    if (plain.type === "reasoning") {
      const how = fate(part as ReasoningPart);
      if (how === "native" && target.api === "chat") fields.push(part as ReasoningPart);
      else if (how === "native") content.push({ ...plain, ...kept });
      else if (how === "text") content.push({ type: "text", text: `<thinking>\n${plain.text}\n</thinking>` });
    } else if (plain.type === "tool-call") {
      const { remark: _said, unread: _why, ...call } = plain;
      content.push({
        ...call,
        ...kept,
        toolCallId: idOf(call.toolCallId),
        toolName: safeToolName(call.toolName),
        input: safeInput(call.input),
      });
    } else if (!isBlank(plain.text)) content.push({ ...plain, ...kept });
  }
  if (content.length === 0) return [];
  const calls = content.some((part) => part.type === "tool-call");
  const message = reasoningFields(fields);
  // Kimi and DeepSeek refuse calls without reasoning, even those that another model made.
  if (calls && rules.needsReasoning && Object.keys(message).length === 0) message["reasoning_content"] = " ";
  // Provider data is JSON by origin; the SDK only types it more narrowly than we do.
  return [
    {
      role: "assistant",
      content: rules.thoughtSignatures ? signed(content) : content,
      ...(Object.keys(message).length === 0 ? {} : { providerOptions: { openaiCompatible: message } }),
    } as SdkAssistant,
  ];
}

/** Gemini signs only the first of several parallel calls. */
function signed(content: readonly AssistantPart[]): AssistantPart[] {
  const first = content.findIndex((part) => part.type === "tool-call");
  return content.map((part, index) =>
    index !== first || part.providerOptions?.[COMPATIBLE_KEY]?.["thoughtSignature"] !== undefined
      ? part
      : { ...part, providerOptions: { [COMPATIBLE_KEY]: { thoughtSignature: NO_SIGNATURE } } },
  );
}

/** Arguments that were not a JSON object go back as one: servers that parse them refuse anything else. */
function safeInput(input: unknown): unknown {
  if (typeof input === "object" && input !== null && !Array.isArray(input)) return input;
  return { invalid_arguments: typeof input === "string" ? input : JSON.stringify(input ?? null) };
}

/** Adjusts the messages to the rules on who may speak after whom, and last. */
function inOrder(messages: readonly ModelMessage[], rules: WireRules): ModelMessage[] {
  const ordered = messages.flatMap((message, index): ModelMessage[] =>
    !rules.userAfterResults && message.role === "user" && messages[index - 1]?.role === "tool"
      ? [{ role: "assistant", content: [{ type: "text", text: SEEN }] }, message]
      : [message],
  );
  if (ordered.at(-1)?.role === "assistant" && !rules.endsWithAssistant)
    ordered.push({ role: "user", content: [{ type: "text", text: GO_ON }] });
  return ordered;
}

/** Anthropic's cache marks: the newer of the two marks the prefix of the next request. */
function marked(messages: readonly ModelMessage[], target: ModelTarget): ModelMessage[] {
  const turns = markedTurns(messages);
  const providerOptions = { anthropic: { cacheControl: cacheMark(target) } };
  return messages.map((message, index) => (turns.has(index) ? { ...message, providerOptions } : message));
}
