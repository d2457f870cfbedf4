/** `messages` of POST /v1/chat/completions, and `input` of POST /v1/responses. Pure. @throws Refusal */
import { fieldOf, isObject, media, plainText, text, type Json } from "./fields.ts";
import { invalid, invalidValue, missing, notOneOf, wrongType } from "./refusal.ts";
import { WIRE_FIELDS } from "./wire-fields.ts";
import type { WireItem, WirePart } from "./wire.ts";

interface Said {
  readonly system: string;
  readonly items: WireItem[];
}

const ROLES = ["system", "assistant", "user", "function", "tool", "developer"];

export function parseChatItems(raw: Json): Said {
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
        system.push(plainText(partsOf("chat", message["content"], path)));
        break;
      case "user":
        items.push({ type: "message", role: "user", parts: partsOf("chat", message["content"], path) });
        break;
      case "assistant":
        items.push(...answer(message, path));
        break;
      case "tool": {
        const content = partsOf("chat", message["content"], path);
        if (content.some(({ type }) => type !== "text"))
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

function answer(message: Json, path: string): WireItem[] {
  const calls = message["tool_calls"];
  const content = message["content"];
  const items: WireItem[] = [];
  if (content !== null && content !== undefined) {
    items.push({ type: "message", role: "assistant", parts: partsOf("chat", content, path) });
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

export function parseResponsesItems(raw: Json): Said {
  const input = raw["input"];
  const system: string[] = typeof raw["instructions"] === "string" ? [raw["instructions"]] : [];
  const items: WireItem[] = [];
  if (typeof input === "string") {
    return {
      system: system.join("\n"),
      items: [{ type: "message", role: "user", parts: [{ type: "text", text: input }] }],
    };
  }
  if (!Array.isArray(input)) throw missing("input");
  input.forEach((entry: unknown, index) => {
    const path = `input[${index}]`;
    if (!isObject(entry)) throw wrongType(path, "an object");
    const role = entry["role"];
    if (role === "system" || role === "developer") {
      system.push(plainText(partsOf("responses", entry["content"], path)));
    } else items.push(itemOf(entry, path));
  });
  return { system: system.join("\n"), items };
}

function itemOf(entry: Json, path: string): WireItem {
  const type = entry["type"] ?? "message";
  switch (type) {
    case "message": {
      const role = entry["role"];
      if (role !== "user" && role !== "assistant")
        throw notOneOf(role, ["assistant", "system", "developer", "user"], `${path}.role`);
      return { type: "message", role, parts: partsOf("responses", entry["content"], path) };
    }
    case "reasoning": {
      const encrypted = entry["encrypted_content"];
      const summary = Array.isArray(entry["summary"]) ? entry["summary"] : [];
      return {
        type: "reasoning",
        id: typeof entry["id"] === "string" ? entry["id"] : "",
        text: summary
          .map((part: unknown) => (isObject(part) ? text(part["text"], `${path}.summary`) : ""))
          .join("\n\n"),
        encrypted: typeof encrypted === "string" ? encrypted : undefined,
      };
    }
    case "function_call":
      return {
        type: "call",
        callId: text(entry["call_id"], `${path}.call_id`),
        name: text(entry["name"], `${path}.name`),
        arguments: text(entry["arguments"], `${path}.arguments`),
      };
    case "function_call_output":
      return {
        type: "result",
        callId: text(entry["call_id"], `${path}.call_id`),
        parts: partsOf("responses", entry["output"], `${path}.output`),
      };
    case "item_reference":
      return { type: "reference", id: text(entry["id"], `${path}.id`) };
    default:
      throw notOneOf(type, Object.keys(WIRE_FIELDS.responses.items), path);
  }
}

/** The types of parts that each wire knows. */
const PARTS = {
  chat: ["text", "image_url", "input_audio", "refusal", "file"],
  responses: ["input_text", "input_image", "output_text", "refusal", "input_file"],
};

/** The parts of a message's content. */
function partsOf(api: keyof typeof PARTS, content: unknown, path: string): WirePart[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  if (!Array.isArray(content)) throw missing(`${path}.content`, path);
  return content.map((part: unknown, index) => {
    const at = `${path}.content[${index}]`;
    if (!isObject(part)) throw wrongType(at, "an object");
    const type = PARTS[api].find((known) => known === part["type"]) ?? "";
    switch (type) {
      case "text":
      case "input_text":
      case "output_text":
        return { type: "text", text: text(part["text"], `${at}.text`) };
      case "refusal":
        return { type: "text", text: text(part["refusal"], `${at}.refusal`) };
      case "image_url":
        return media("image", fieldOf(part["image_url"], "url"), `${at}.image_url.url`);
      case "input_image":
        return media("image", part["image_url"], `${at}.image_url`);
      case "file":
        return media("file", fieldOf(part["file"], "file_data"), `${at}.file.file_data`);
      case "input_file":
        return media("file", part["file_data"], `${at}.file_data`);
      default:
        throw notOneOf(part["type"], PARTS[api], at);
    }
  });
}
