/** POST /v1/messages to the neutral form. Pure. @throws Refusal if the body is not what the format allows */
import { bytesIn, imageTypeOf, isDamaged, isObject, type Json } from "../fields.ts";
import { invalid } from "../refusal.ts";
import type { Conversation, WireItem, WirePart, WireTool } from "../wire.ts";

/** Of one image, as base64. */
const MAX_IMAGE_CHARS = 5 * 1024 * 1024;

/** The content of an Anthropic request; check-messages.ts checks the order. */
export function parseMessages(raw: Json): Conversation {
  const messages = raw["messages"];
  if (!Array.isArray(messages)) throw invalid("messages: Field required");
  const items: WireItem[] = [];
  messages.forEach((message: unknown, index) => {
    const path = `messages.${index}`;
    if (!isObject(message)) throw invalid(`${path}: Input should be a valid dictionary or object`);
    const { role } = message;
    if (role === "system") {
      throw invalid(
        'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, not "system" as an input message role.',
      );
    }
    if (role !== "user" && role !== "assistant")
      throw invalid(`${path}.role: Input should be 'user' or 'assistant'`);
    for (const [at, block] of blocksOf(message["content"], `${path}.content`))
      items.push(itemOf(block, at, role));
  });
  return { system: systemOf(raw["system"]), items, tools: toolsOf(raw["tools"]) };
}

/** Blocks of a content with their paths; a string is one text. */
export function blocksOf(content: unknown, path: string): [string, Json][] {
  if (typeof content === "string") return [[path, { type: "text", text: content }]];
  if (!Array.isArray(content)) throw invalid(`${path}: Input should be a valid list`);
  return content.map((block: unknown, index) => {
    if (!isObject(block)) throw invalid(`${path}.${index}: Input should be a valid dictionary or object`);
    return [`${path}.${index}`, block];
  });
}

function itemOf(block: Json, path: string, role: "user" | "assistant"): WireItem {
  switch (block["type"]) {
    case "text":
    case "image":
    case "document":
      return { type: "message", role, parts: [partOf(block, path)] };
    case "thinking":
      return {
        type: "reasoning",
        id: "",
        text: field(block, "thinking", path),
        encrypted: field(block, "signature", path),
      };
    case "redacted_thinking":
      return { type: "reasoning", id: "", text: "", encrypted: field(block, "data", path) };
    case "tool_use":
      if (!isObject(block["input"]))
        throw invalid(`${path}.tool_use.input: Input should be a valid dictionary`);
      return {
        type: "call",
        callId: field(block, "id", path),
        name: field(block, "name", path),
        arguments: JSON.stringify(block["input"]),
      };
    case "tool_result":
      return {
        type: "result",
        callId: field(block, "tool_use_id", path),
        parts:
          block["content"] === undefined
            ? []
            : blocksOf(block["content"], `${path}.content`).map(([at, part]) => partOf(part, at)),
      };
    default:
      throw invalid(
        `${path}: Input tag '${String(block["type"])}' found using 'type' does not match any of the expected tags: 'document', 'image', 'redacted_thinking', 'text', 'thinking', 'tool_result', 'tool_use'`,
      );
  }
}

function partOf(block: Json, path: string): WirePart {
  if (block["type"] === "text") return { type: "text", text: field(block, "text", path) };
  const { source } = block;
  const kind = block["type"] === "image" ? "image" : "file";
  if (!isObject(source)) throw invalid(`${path}.${String(block["type"])}.source: Field required`);
  if (source["type"] === "url") return { type: kind, mediaType: "url", bytes: 0 };
  const data = field(source, "data", `${path}.source`);
  const mediaType = field(source, "media_type", `${path}.source`);
  if (kind === "image") checkImage(data, mediaType, path);
  return { type: kind, mediaType, bytes: bytesIn(data) };
}

function checkImage(data: string, mediaType: string, path: string): void {
  const at = `${path}.image.source.base64`;
  if (!["image/jpeg", "image/png", "image/gif", "image/webp"].includes(mediaType)) {
    throw invalid(`${at}.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'`);
  }
  const found = imageTypeOf(data);
  if (found === undefined || isDamaged(data)) throw invalid("Could not process image");
  if (data.length > MAX_IMAGE_CHARS)
    throw invalid(`${at}: image exceeds 5 MB maximum: ${data.length} bytes > ${MAX_IMAGE_CHARS} bytes`);
  if (found !== mediaType) {
    throw invalid(
      `${at}.data: Image does not match the provided media type ${mediaType}. The image appears to be a ${found} image`,
    );
  }
}

function systemOf(system: unknown): string {
  if (system === undefined) return "";
  return blocksOf(system, "system")
    .map(([path, block]) => field(block, "text", path))
    .join("\n");
}

function toolsOf(tools: unknown): WireTool[] {
  if (tools === undefined) return [];
  if (!Array.isArray(tools)) throw invalid("tools: Input should be a valid list");
  return tools.map((tool: unknown, index) => {
    const path = `tools.${index}.custom`;
    if (!isObject(tool)) throw invalid(`${path}: Input should be a valid dictionary or object`);
    const { description } = tool;
    return {
      name: field(tool, "name", path),
      description: typeof description === "string" ? description : "",
      schema: tool["input_schema"],
    };
  });
}

function field(block: Json, name: string, path: string): string {
  const value = block[name];
  if (typeof value === "string") return value;
  throw invalid(
    value === undefined
      ? `${path}.${name}: Field required`
      : `${path}.${name}: Input should be a valid string`,
  );
}
