/** Our transcript in the AI SDK's words, such that either wire accepts it. Pure. */
import type { ModelMessage, ToolResultPart as SdkToolResult } from "ai";
import { cutChars } from "../contract/cut-text.ts";
import type {
  AssistantPart,
  FilePart,
  Message,
  ReasoningPart,
  ToolResultPart,
  UserPart,
} from "../contract/message.ts";

/** Where we note which model thought: encrypted reasoning is readable to that one only. */
export const ORIGIN_KEY = "longhaul";

export interface Target {
  /** As in `ModelRequest.model`. */
  readonly model: string;
  readonly api: "responses" | "chat";
}

type SdkFile = { type: "file"; data: { type: "data"; data: string }; mediaType: string; filename?: string };
type SdkAssistant = Extract<ModelMessage, { role: "assistant" }>;

/** @param messages well-formed: each call has its result, files carry `data:` URLs */
export function toModelMessages(messages: readonly Message[], target: Target): ModelMessage[] {
  const sent: ModelMessage[] = [];
  for (let index = 0; index < messages.length; index += 1) {
    const message = messages[index];
    if (message === undefined) continue;
    if (message.role === "user") sent.push({ role: "user", content: message.content.map(toUserPart) });
    if (message.role === "assistant") {
      const content = toAssistantContent(message.content, target);
      if (content.length > 0)
        // Provider data is JSON by origin; the SDK only types it more narrowly than we do.
        sent.push({ role: "assistant", content } as SdkAssistant);
    }
    if (message.role === "tool") {
      const results: ToolResultPart[] = [...message.content];
      for (let next = messages[index + 1]; next?.role === "tool"; next = messages[index + 1]) {
        results.push(...next.content);
        index += 1;
      }
      sent.push(...toToolMessages(results, target));
    }
  }
  return sent;
}

function toUserPart(part: UserPart): { type: "text"; text: string } | SdkFile {
  return part.type === "text" ? { type: "text", text: part.text } : toFile(part);
}

function toFile(part: FilePart): SdkFile {
  const match = /^data:[^,]*?;base64,/.exec(cutChars(part.data, 200));
  return {
    type: "file",
    data: { type: "data", data: match === null ? part.data : part.data.slice(match[0].length) },
    mediaType: part.mediaType,
    ...(part.filename === undefined ? {} : { filename: part.filename }),
  };
}

function toAssistantContent(parts: readonly AssistantPart[], target: Target): AssistantPart[] {
  const usable = usableReasoning(parts, target);
  const content: AssistantPart[] = [];
  for (const part of parts) {
    if (part.type === "reasoning" && !usable.has(part)) continue;
    if (part.type === "text" && part.text === "") continue;
    if (part.type === "tool-call")
      content.push({ ...part, toolName: safeToolName(part.toolName), input: safeInput(part.input) });
    else content.push(part);
  }
  return content;
}

/**
 * Reasoning goes back only where the provider can take it: on the Responses wire, to the model that thought it, with its
 * encrypted content, and followed by what it led to. All else is refused ("Item not found", "without its required
 * following item"), and the chat wire has no place for it.
 */
function usableReasoning(parts: readonly AssistantPart[], target: Target): ReadonlySet<AssistantPart> {
  const usable = new Set<AssistantPart>();
  if (target.api === "chat") return usable;
  const encryptedItems = new Set<string>();
  const lastContent = parts.findLastIndex(
    (part) => part.type !== "reasoning" && !(part.type === "text" && part.text === ""),
  );
  const candidates = parts
    .slice(0, lastContent + 1)
    .filter((part) => part.type === "reasoning")
    .filter((part) => (part.providerOptions?.[ORIGIN_KEY]?.["model"] ?? target.model) === target.model);
  for (const part of candidates) {
    const { itemId, encrypted } = reasoningFacts(part);
    if (encrypted) encryptedItems.add(itemId ?? "");
  }
  for (const part of candidates) {
    const { itemId, encrypted } = reasoningFacts(part);
    if (encrypted || (itemId !== undefined && encryptedItems.has(itemId))) usable.add(part);
  }
  return usable;
}

/** What a reasoning part carries of its provider. */
export function reasoningFacts(part: Pick<ReasoningPart, "providerOptions">): {
  readonly itemId: string | undefined;
  readonly encrypted: boolean;
} {
  const openai = part.providerOptions?.["openai"];
  const itemId = openai?.["itemId"];
  const encrypted = openai?.["reasoningEncryptedContent"];
  return {
    itemId: typeof itemId === "string" ? itemId : undefined,
    encrypted: typeof encrypted === "string" && encrypted !== "",
  };
}

/** A name no provider refuses: models sometimes add stray tokens to one, and it is sent back with the history. */
function safeToolName(name: string): string {
  return cutChars(name.replaceAll(/[^a-zA-Z0-9_-]/g, "_"), 64) || "unknown";
}

/** Arguments that were not a JSON object go back as one: servers that parse them refuse anything else. */
function safeInput(input: unknown): unknown {
  if (typeof input === "object" && input !== null && !Array.isArray(input)) return input;
  return { invalid_arguments: typeof input === "string" ? input : JSON.stringify(input ?? null) };
}

function toToolMessages(results: readonly ToolResultPart[], target: Target): ModelMessage[] {
  const message: ModelMessage = {
    role: "tool",
    content: results.map((result) => toToolResult(result, target)),
  };
  const files = results.flatMap((result) => (result.files ?? []).map((file) => ({ result, file })));
  if (target.api === "responses" || files.length === 0) return [message];
  // A chat tool message holds text only, so its images follow as the user's, after all sibling results.
  const shown = files.flatMap(({ result, file }) => [
    { type: "text" as const, text: `File from the result of ${result.toolName} (${result.toolCallId}):` },
    toFile(file),
  ]);
  return [message, { role: "user", content: shown }];
}

function toToolResult(result: ToolResultPart, target: Target): SdkToolResult {
  const text = resultText(result);
  const files = result.files ?? [];
  const call = {
    type: "tool-result" as const,
    toolCallId: result.toolCallId,
    toolName: safeToolName(result.toolName),
  };
  if (files.length === 0 || target.api === "chat") return { ...call, output: { type: "text", value: text } };
  return { ...call, output: { type: "content", value: [{ type: "text", text }, ...files.map(toFile)] } };
}

/**
 * The outcome in the text itself: neither wire has a field for it, and the SDK's error form would wrap the text in JSON,
 * which costs tokens for every escaped line break.
 */
function resultText(result: ToolResultPart): string {
  const text = result.text === "" ? "(no output)" : result.text;
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
