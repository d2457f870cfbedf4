/** POST /v1beta/models/X:streamGenerateContent to the neutral form. Pure. @throws Refusal */
import { bytesIn, imageTypeOf, isObject, type Json } from "../fields.ts";
import { invalid } from "../refusal.ts";
import type { Conversation, WireItem, WirePart, WireTool } from "../wire.ts";

/** A result answers the oldest open call of its name; ids, if present, decide. */
export function parseGemini(raw: Json): Conversation {
  const items: WireItem[] = [];
  const waiting: { id: string; name: string }[] = [];
  contentsOf(raw).forEach((content, index) => {
    const { role } = content;
    partsOf(content).forEach((part, position) => {
      const path = `contents[${index}].parts[${position}]`;
      const item = itemOf(part, { path, role: role === "model" ? "assistant" : "user", waiting });
      items.push(item);
    });
  });
  const instruction = raw["systemInstruction"];
  return {
    system: isObject(instruction) ? partsOf(instruction).map(textOf).join("\n") : "",
    items,
    tools: toolsOf(raw["tools"]),
  };
}

/** The conversation's contents. */
export function contentsOf(raw: Json): readonly Json[] {
  const { contents } = raw;
  if (!Array.isArray(contents) || contents.length === 0)
    throw invalid("* GenerateContentRequest.contents: contents is not specified");
  return contents.filter(isObject);
}

export function partsOf(content: Json): readonly Json[] {
  const { parts } = content;
  return Array.isArray(parts) ? parts.filter(isObject) : [];
}

interface PartContext {
  readonly path: string;
  readonly role: "user" | "assistant";
  readonly waiting: { id: string; name: string }[];
}

function itemOf(part: Json, { path, role, waiting }: PartContext): WireItem {
  const { functionCall: call, functionResponse: response } = part;
  const signature = part["thoughtSignature"];
  if (isObject(call)) {
    if (!isObject(call["args"]) && call["args"] !== undefined)
      throw invalid(
        `Invalid value at '${path}.function_call.args' (type.googleapis.com/google.protobuf.Struct)`,
      );
    const name = String(call["name"]);
    const id = typeof call["id"] === "string" ? call["id"] : path;
    waiting.push({ id, name });
    return { type: "call", callId: id, name, arguments: JSON.stringify(call["args"] ?? {}) };
  }
  if (isObject(response)) {
    if (!isObject(response["response"]))
      throw invalid(
        `Invalid value at '${path}.function_response.response' (type.googleapis.com/google.protobuf.Struct)`,
      );
    const { id, name } = response;
    const at = waiting.findIndex((open) => (typeof id === "string" ? open.id === id : open.name === name));
    const [answered] = at === -1 ? [] : waiting.splice(at, 1);
    const nested = partsOf(response).flatMap((inner) => mediaOf(inner, path));
    const text = JSON.stringify(response["response"]);
    return { type: "result", callId: answered?.id ?? "", parts: [{ type: "text", text }, ...nested] };
  }
  if (part["thought"] === true)
    return {
      type: "reasoning",
      id: "",
      text: textOf(part),
      encrypted: typeof signature === "string" ? signature : undefined,
    };
  const media = mediaOf(part, path);
  return { type: "message", role, parts: media.length > 0 ? media : [{ type: "text", text: textOf(part) }] };
}

function mediaOf(part: Json, path: string): WirePart[] {
  const inline = part["inlineData"];
  if (!isObject(inline)) return [];
  const { mimeType, data } = inline;
  if (typeof mimeType !== "string" || typeof data !== "string")
    throw invalid(`Invalid value at '${path}.inline_data'`);
  const isImage = mimeType.startsWith("image/");
  if (isImage && imageTypeOf(data) === undefined) throw invalid("Unable to process input image.");
  return [{ type: isImage ? "image" : "file", mediaType: mimeType, bytes: bytesIn(data) }];
}

function textOf(part: Json): string {
  return typeof part["text"] === "string" ? part["text"] : "";
}

function toolsOf(tools: unknown): WireTool[] {
  if (!Array.isArray(tools)) return [];
  return tools.flatMap((tool: unknown) => {
    const declarations = isObject(tool) ? tool["functionDeclarations"] : undefined;
    if (!Array.isArray(declarations)) return [];
    return declarations.filter(isObject).map((declaration) => ({
      name: String(declaration["name"]),
      description: typeof declaration["description"] === "string" ? declaration["description"] : "",
      schema: declaration["parametersJsonSchema"] ?? declaration["parameters"],
    }));
  });
}
