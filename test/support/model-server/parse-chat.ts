/** `messages` of POST /v1/chat/completions. Pure. */
import { contentParts, fieldOf, isObject, media, plainText, text, type Json } from "./fields.ts";
import { invalid, invalidValue, missing, notOneOf, wrongType } from "./refusal.ts";
import type { WireItem, WirePart } from "./wire.ts";

const ROLES = ["system", "assistant", "user", "function", "tool", "developer"];
const PARTS = ["text", "image_url", "input_audio", "refusal", "file"];

export function parseChatItems(raw: Json): { system: string; items: WireItem[] } {
  const messages = raw["messages"];
  if (!Array.isArray(messages) || messages.length === 0) throw missing("messages");
  const system: string[] = [];
  const items: WireItem[] = [];
  messages.forEach((message: unknown, index) => {
    const path = `messages[${index}]`;
    if (!isObject(message)) throw wrongType(path, "an object");
    switch (message["role"]) {
      case "system":
      case "developer":
        system.push(plainText(parts(message["content"], path)));
        break;
      case "user":
        items.push({ type: "message", role: "user", parts: parts(message["content"], path) });
        break;
      case "assistant":
        items.push(...assistant(message, path));
        break;
      case "tool": {
        const content = parts(message["content"], path);
        if (content.some((one) => one.type !== "text"))
          throw invalidValue(
            `Invalid '${path}'. Image URLs are only allowed for messages with role 'user', but this message with role 'tool' contains an image URL.`,
            path,
          );
        const callId = text(message["tool_call_id"], `${path}.tool_call_id`);
        items.push({ type: "result", callId, parts: content });
        break;
      }
      default:
        throw notOneOf(message["role"], ROLES, `${path}.role`);
    }
  });
  return { system: system.join("\n"), items };
}

function assistant(message: Json, path: string): WireItem[] {
  const calls = message["tool_calls"];
  const content = message["content"];
  const items: WireItem[] = [];
  if (content !== null && content !== undefined) {
    items.push({ type: "message", role: "assistant", parts: parts(content, path) });
  } else if (!Array.isArray(calls)) {
    throw invalid("Invalid value for 'content': expected a string, got null.", null, `${path}.content`);
  }
  if (calls === undefined || calls === null) return items;
  if (!Array.isArray(calls) || calls.length === 0) {
    throw invalid(
      `Invalid '${path}.tool_calls': empty array. Expected an array with minimum length 1, but got an empty array instead.`,
      "empty_array",
      `${path}.tool_calls`,
    );
  }
  calls.forEach((call: unknown, index) => {
    const at = `${path}.tool_calls[${index}]`;
    const called = isObject(call) ? call["function"] : undefined;
    if (!isObject(call) || !isObject(called)) throw missing(`${at}.function`, at);
    items.push({
      type: "call",
      callId: text(call["id"], `${at}.id`),
      name: text(called["name"], `${at}.function.name`),
      arguments: text(called["arguments"], `${at}.function.arguments`),
    });
  });
  return items;
}

function parts(content: unknown, path: string): WirePart[] {
  return contentParts(content, path, (part, at) => {
    switch (part["type"]) {
      case "text":
        return { type: "text", text: text(part["text"], `${at}.text`) };
      case "refusal":
        return { type: "text", text: text(part["refusal"], `${at}.refusal`) };
      case "image_url":
        return media("image", fieldOf(part["image_url"], "url"), `${at}.image_url.url`);
      case "file":
        return media("file", fieldOf(part["file"], "file_data"), `${at}.file.file_data`);
      default:
        throw notOneOf(part["type"], PARTS, at);
    }
  });
}
