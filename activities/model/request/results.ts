/** A person's text and images, and the results of calls, in the SDK's form. Pure. */
import type { ModelMessage } from "ai";
import { cutChars } from "../../contract/cut-text.ts";
import type { FilePart, ToolResultPart, UserPart } from "../../contract/message.ts";
import type { ModelTarget } from "../../config/model-target.ts";
import { isBlank } from "./reasoning.ts";
import type { WireRules } from "./wire-rules.ts";

type ImageDetail = ModelTarget["imageDetail"];
type ToolMessage = Extract<ModelMessage, { readonly role: "tool" }>;
type SdkToolResult = Extract<ToolMessage["content"][number], { readonly type: "tool-result" }>;
type SdkFile = { type: "file"; data: { type: "data"; data: string }; mediaType: string; filename?: string };

export function toUserPart(part: UserPart, detail: ImageDetail): { type: "text"; text: string } | SdkFile {
  return part.type === "text" ? { type: "text", text: part.text } : toFile(part, detail);
}

/** The image detail is always given: OpenAI's schema requires it, and vLLM enforces that. */
function toFile(part: FilePart, detail: ImageDetail): SdkFile {
  const match = /^data:[^,]*?;base64,/.exec(cutChars(part.data, 200));
  return {
    type: "file",
    data: { type: "data", data: match === null ? part.data : part.data.slice(match[0].length) },
    mediaType: part.mediaType,
    ...(part.filename === undefined ? {} : { filename: part.filename }),
    ...(part.mediaType.startsWith("image/")
      ? { providerOptions: { openai: { imageDetail: detail ?? "auto" } } }
      : {}),
  };
}

/** One message with the results of a turn; if results cannot contain images, a user message after them shows the images. */
export function toToolMessages(
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
  const shown = files.flatMap(({ result, file }) => [
    {
      type: "text" as const,
      text: `File from the result of ${result.toolName} (${idOf(result.toolCallId)}):`,
    },
    toFile(file, detail),
  ]);
  return [message, { role: "user", content: shown }];
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
export function safeToolName(name: string): string {
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
