/** `input` of POST /v1/responses. Pure. */
import { contentParts, isObject, media, plainText, text, type Json } from "./fields.ts";
import { missing, notOneOf, wrongType } from "./refusal.ts";
import { WIRE_FIELDS } from "./wire-fields.ts";
import type { WireItem, WirePart } from "./wire.ts";

export function parseResponsesItems(raw: Json): { system: string; items: WireItem[] } {
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
      system.push(plainText(parts(entry["content"], path)));
    } else items.push(item(entry, path));
  });
  return { system: system.join("\n"), items };
}

function item(entry: Json, path: string): WireItem {
  const type = entry["type"] ?? "message";
  switch (type) {
    case "message": {
      const role = entry["role"];
      if (role !== "user" && role !== "assistant")
        throw notOneOf(role, ["assistant", "system", "developer", "user"], `${path}.role`);
      return { type: "message", role, parts: parts(entry["content"], path) };
    }
    case "reasoning": {
      const encrypted = entry["encrypted_content"];
      const summary = Array.isArray(entry["summary"]) ? entry["summary"] : [];
      return {
        type: "reasoning",
        id: typeof entry["id"] === "string" ? entry["id"] : "",
        text: summary
          .map((one: unknown) => (isObject(one) ? text(one["text"], `${path}.summary`) : ""))
          .join("\n\n"),
        ...(typeof encrypted === "string" ? { encrypted } : {}),
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
        parts: parts(entry["output"], `${path}.output`),
      };
    case "item_reference":
      return { type: "reference", id: text(entry["id"], `${path}.id`) };
    default:
      throw notOneOf(type, Object.keys(WIRE_FIELDS.responses.items), path);
  }
}

const PARTS = ["input_text", "input_image", "output_text", "refusal", "input_file"];

function parts(content: unknown, path: string): WirePart[] {
  return contentParts(content, path, (part, at) => {
    switch (part["type"]) {
      case "input_text":
      case "output_text":
        return { type: "text", text: text(part["text"], `${at}.text`) };
      case "refusal":
        return { type: "text", text: text(part["refusal"], `${at}.refusal`) };
      case "input_image":
        return media("image", part["image_url"], `${at}.image_url`);
      case "input_file":
        return media("file", part["file_data"], `${at}.file_data`);
      default:
        throw notOneOf(part["type"], PARTS, at);
    }
  });
}
