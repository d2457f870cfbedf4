/** Our transcript as the AI SDK's messages, in a form that the target server accepts. */
import { createHash } from "node:crypto";
import type { ModelMessage } from "ai";
import type { ModelTarget } from "../../config/model-target.ts";
import { cutChars } from "../../text/cut.ts";
import type {
  AssistantPart,
  Message,
  ReasoningPart,
  ToolResultPart,
  FilePart,
  UserPart,
} from "../../contract/message.ts";
import { COMPATIBLE_KEY, dataFor, isBlank, reasoningFields, reasoningToSend } from "./reasoning.ts";
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
      const filledParts = message.content.filter((part) => part.type !== "text" || !isBlank(part.text));
      const content = (filledParts.length === 0 ? [EMPTY] : filledParts).map((part) =>
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
    const ownOptions = data === undefined ? {} : { providerOptions: data };
    if (plain.type === "reasoning") {
      const how = fate(part as ReasoningPart);
      if (how === "native" && target.api === "chat") fields.push(part as ReasoningPart);
      else if (how === "native") content.push({ ...plain, ...ownOptions });
      else if (how === "text") content.push({ type: "text", text: `<thinking>\n${plain.text}\n</thinking>` });
    } else if (plain.type === "tool-call") {
      const { remark: _said, unread: _why, ...call } = plain;
      content.push({
        ...call,
        ...ownOptions,
        toolCallId: idOf(call.toolCallId),
        toolName: safeToolName(call.toolName),
        input: safeInput(call.input),
      });
    } else if (!isBlank(plain.text)) content.push({ ...plain, ...ownOptions });
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
      providerOptions: Object.keys(message).length === 0 ? undefined : { openaiCompatible: message },
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

/** Source: OpenAI refuses longer ones on both wires. */
const MAX_CALL_ID_CHARS = 64;

type Form = WireRules["callIds"];

/** Call ids in the form that a server accepts; the stored ones never change. @returns the id to send for a stored one: the same in every request, and never shared by two */
function callIds(messages: readonly Message[], form: Form): (stored: string) => string {
  const sent = new Map<string, string>();
  const usedIds = new Set<string>();
  for (const { content } of messages) {
    for (const part of content) {
      if (!("toolCallId" in part) || sent.has(part.toolCallId)) continue;
      let id = inForm(part.toolCallId, form);
      for (let salt = 1; usedIds.has(id); salt += 1) id = digest(`${part.toolCallId} ${salt}`, form);
      sent.set(part.toolCallId, id);
      usedIds.add(id);
    }
  }
  return (stored) => sent.get(stored) ?? stored;
}

function inForm(id: string, form: Form): string {
  if (form === "nine") return /^[a-zA-Z0-9]{9}$/.test(id) ? id : digest(id, form);
  if (id.length > MAX_CALL_ID_CHARS) return digest(id, form);
  return form === "safe" ? id.replaceAll(/[^a-zA-Z0-9_-]/g, "_") : id;
}

function digest(text: string, form: Form): string {
  return cutChars(createHash("sha256").update(text).digest("hex"), form === "nine" ? 9 : 32);
}

type ImageDetail = ModelTarget["imageDetail"];
type ToolMessage = Extract<ModelMessage, { readonly role: "tool" }>;
type SdkToolResult = Extract<ToolMessage["content"][number], { readonly type: "tool-result" }>;
type SdkFile = {
  type: "file";
  data: { type: "data"; data: string };
  mediaType: string;
  filename?: string;
  providerOptions?: { openai: { imageDetail: string } };
};

function toUserPart(part: UserPart, detail: ImageDetail): { type: "text"; text: string } | SdkFile {
  return part.type === "text" ? { type: "text", text: part.text } : toFile(part, detail);
}

/** The image detail is always given: OpenAI's schema requires it, and vLLM enforces that. */
function toFile(part: FilePart, detail: ImageDetail): SdkFile {
  const match = /^data:[^,]*?;base64,/.exec(cutChars(part.data, 200));
  return {
    type: "file",
    data: { type: "data", data: match === null ? part.data : part.data.slice(match[0].length) },
    mediaType: part.mediaType,
    filename: part.filename,
    providerOptions: part.mediaType.startsWith("image/")
      ? { openai: { imageDetail: detail ?? "auto" } }
      : undefined,
  };
}

/** One message with the results of a turn; if results cannot contain images, a user message after them shows the images. */
function toToolMessages(
  results: readonly ToolResultPart[],
  rules: WireRules,
  idOf: (stored: string) => string,
  detail: ImageDetail,
): ModelMessage[] {
  const message: ModelMessage = {
    role: "tool",
    content: results.map((result) => toToolResult(result, rules, idOf, detail)),
  };
  const files = results.flatMap((result) => (result.files ?? []).map((file) => ({ result, file })));
  if (rules.filesInResults || files.length === 0) return [message];
  const fileParts = files.flatMap(({ result, file }) => [
    {
      type: "text" as const,
      text: `File from the result of ${result.toolName} (${idOf(result.toolCallId)}):`,
    },
    toFile(file, detail),
  ]);
  return [message, { role: "user", content: fileParts }];
}

function toToolResult(
  result: ToolResultPart,
  { filesInResults }: WireRules,
  idOf: (stored: string) => string,
  detail: ImageDetail,
): SdkToolResult {
  const text = resultText(result);
  const files = result.files ?? [];
  const call = {
    type: "tool-result" as const,
    toolCallId: idOf(result.toolCallId),
    toolName: safeToolName(result.toolName),
  };
  if (files.length === 0 || !filesInResults) return { ...call, output: { type: "text", value: text } };
  return {
    ...call,
    output: {
      type: "content",
      value: [{ type: "text", text }, ...files.map((file) => toFile(file, detail))],
    },
  };
}

/** A name that no provider refuses: models sometimes add stray tokens, and the name is sent back with the history. */
function safeToolName(name: string): string {
  const safe = cutChars(name.replaceAll(/[^a-zA-Z0-9_-]/g, "_"), 64);
  // The SDK looks names up in an object: the name of a built-in JavaScript property would not yield text.
  return safe === "" || safe in {} ? "unknown" : safe;
}

/**
 * The outcome in the text itself: no wire has a field for it that all servers take, and the SDK's error form would wrap the
 * text in JSON, which costs tokens for every escaped line break.
 */
function resultText(result: ToolResultPart): string {
  const text = isBlank(result.text) ? "(no output)" : result.text;
  switch (result.outcome) {
    case "completed":
      return text;
    case "error":
      return /^\W*error/i.test(text) ? text : `Error: ${text}`;
    case "interrupted":
      return text.includes("[interrupted]") ? text : `${text} [interrupted]`;
    case "unknown":
      return /unknown/i.test(text) ? text : `Outcome unknown: ${text}`;
  }
}
