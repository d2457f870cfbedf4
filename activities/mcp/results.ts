/**
 * The one reader of a tool's result from an MCP server. What the protocol allows is untouched; the rest is brought into its form:
 *
 * | sent | read as |
 * |---|---|
 * | `null` for what is optional (`annotations`, `isError`, `structuredContent`, `mimeType`) | absent |
 * | `content` that is `null`, absent, one block, a text, or a list with texts in it | the list of blocks |
 * | a block of an unknown kind | its text, or a line that names its kind and quotes it |
 * | pictures with line breaks in their data, as `data:` addresses, with `mime_type`; data that is none | the picture; a line that says so |
 * | a result that is a text, a list or a number; `toolResult` of the first revision; an object of other fields | the text, or the data |
 */
import { isCallToolResult, type CallToolResult, type ContentBlock } from "@modelcontextprotocol/client";
import type { FilePart } from "../contract/message.ts";
import { detectImageType } from "../store/media.ts";
import { shorten } from "../text/cut.ts";
import { isJsonObject, toObject, type JsonObject } from "../text/json.ts";
import { oneLine, showSize } from "../tools/paths.ts";
import { MAX_IMAGE_BYTES, storeImage } from "../tools/store-image.ts";
import type { ToolContext, ToolResult } from "../tools/tool.ts";

/** In a message, whose result must be an object: what came instead. */
export const PLAIN = "longhaul/plain";
/** Of a part that is only quoted. Chosen: enough to see what it is. */
const QUOTED_CHARS = 2_000;

/** @param result as it came, or `{[PLAIN]: …}` */
export function readCallResult(result: unknown): CallToolResult {
  if (isWellFormed(result)) return result;
  const plainResult = isJsonObject(result) && PLAIN in result ? result[PLAIN] : result;
  if (!isJsonObject(plainResult)) return { content: blocksOf(plainResult) };
  const { content, structuredContent, isError, toolResult, _meta, resultType, ...others } = plainResult;
  const isBare = content === undefined && structuredContent === undefined && toolResult === undefined;
  const data = structuredContent ?? (isBare && Object.keys(others).length > 0 ? others : undefined);
  return {
    content: [
      ...blocksOf(content),
      ...blocksOf(toolResult),
      ...(data === undefined || isJsonObject(data) ? [] : [textBlock(data)]),
    ],
    structuredContent: isJsonObject(data) ? data : undefined,
    isError: isTrue(isError) ? true : undefined,
    _meta: isJsonObject(_meta) ? _meta : undefined,
    ...(typeof resultType === "string" ? { resultType } : {}),
  };
}

/** By the schemas of all revisions: the older ones take an object as data only. */
function isWellFormed(result: unknown): result is CallToolResult {
  if (!isJsonObject(result) || PLAIN in result || !isCallToolResult(result)) return false;
  return result.structuredContent === undefined || isJsonObject(result.structuredContent);
}

const isTrue = (flag: unknown): boolean => flag === true || flag === 1 || flag === "true";

function blocksOf(content: unknown): ContentBlock[] {
  if (content === undefined || content === null) return [];
  if (!Array.isArray(content)) return [blockOf(content)];
  // A list that is data, not content.
  const isContent = content.every((part) => typeof part === "string" || isJsonObject(part));
  return isContent ? content.map(blockOf) : [textBlock(content)];
}

const textBlock = (value: unknown): ContentBlock => ({
  type: "text",
  text: typeof value === "string" ? value : JSON.stringify(value),
});

function blockOf(part: unknown): ContentBlock {
  if (!isJsonObject(part) || typeof part["type"] !== "string") return textBlock(part);
  const { type, text, resource } = part;
  if (type === "text") return textBlock(text ?? "");
  if (type === "image" || type === "audio") return mediaBlock(type, part);
  if (type === "resource" && isJsonObject(resource)) return resourceBlock(resource);
  if (type === "resource_link" && typeof part["uri"] === "string") return linkBlock(part["uri"], part);
  return typeof text === "string" ? textBlock(text) : quoted(part);
}

const quoted = (part: JsonObject): ContentBlock =>
  textBlock(
    `[a part of the unknown kind ${shorten(String(part["type"]), 80)}: ${shorten(JSON.stringify(part), QUOTED_CHARS)}]`,
  );

function mediaBlock(type: "image" | "audio", part: JsonObject): ContentBlock {
  const [, named, written = textOf(part["data"])] =
    /^data:([^;,]*)[^,]*,(.*)$/s.exec(textOf(part["data"])) ?? [];
  const data = base64Of(written);
  if (data === undefined) return textBlock(`[${type}: not shown, its data is not base64]`);
  return { type, data, mimeType: typeOf(part) ?? (named || "application/octet-stream") };
}

function resourceBlock(resource: JsonObject): ContentBlock {
  const uri = textOf(resource["uri"]) || "without an address";
  const mimeType = typeOf(resource);
  const about = { uri, mimeType };
  const blob = typeof resource["text"] === "string" ? undefined : base64Of(textOf(resource["blob"]));
  if (blob !== undefined && blob !== "") return { type: "resource", resource: { ...about, blob } };
  const text = resource["text"] ?? resource["content"] ?? "";
  return {
    type: "resource",
    resource: { ...about, text: typeof text === "string" ? text : JSON.stringify(text) },
  };
}

function linkBlock(uri: string, part: JsonObject): ContentBlock {
  const description = textOf(part["description"]);
  const mimeType = typeOf(part);
  return {
    type: "resource_link",
    uri,
    name: textOf(part["name"]) || textOf(part["title"]) || uri,
    description: description === "" ? undefined : description,
    mimeType,
  };
}

function typeOf(part: JsonObject): string | undefined {
  const type = part["mimeType"] ?? part["mime_type"] ?? part["mediaType"];
  return typeof type === "string" && type !== "" ? type : undefined;
}

function base64Of(written: string): string | undefined {
  const data = written.replaceAll(/\s+/g, "").replaceAll("-", "+").replaceAll("_", "/");
  return /^[A-Za-z0-9+/]*={0,2}$/.test(data) ? Buffer.from(data, "base64").toString("base64") : undefined;
}

const textOf = (value: unknown): string => (typeof value === "string" ? value : "");

/**
 * A server's list of tools in the form that the protocol's client accepts: it refuses the whole list for one tool that the
 * protocol does not allow, such as one with a schema of alternatives without `type: object`. The schemas of results are left out:
 * the client would refuse a result that does not match, but the model can read it anyway.
 */
export function readToolList(result: JsonObject): JsonObject {
  const { tools = result[PLAIN], nextCursor, [PLAIN]: _plain, ttlMs, cacheScope, ...rest } = result;
  return {
    ...rest,
    // The client refuses a list without a sound pair.
    ...(typeof ttlMs === "number" ? { ttlMs: Math.max(0, Math.trunc(ttlMs)) } : {}),
    ...(cacheScope === "public" || cacheScope === "private" ? { cacheScope } : {}),
    ...(rest["resultType"] === undefined ? {} : soundCache(ttlMs, cacheScope)),
    tools: readableTools(Array.isArray(tools) ? tools : []),
    // An empty one means the same as none.
    ...(typeof nextCursor === "string" && nextCursor !== "" ? { nextCursor } : {}),
  };
}

/** What the newest revision demands of a list. */
const soundCache = (ttlMs: unknown, cacheScope: unknown): JsonObject => ({
  ...(typeof ttlMs === "number" ? {} : { ttlMs: 0 }),
  ...(cacheScope === "public" || cacheScope === "private" ? {} : { cacheScope: "private" }),
});

function readableTools(tools: readonly unknown[]): JsonObject[] {
  return tools.filter(isJsonObject).flatMap((tool) => {
    const { name, title, description, inputSchema, annotations } = tool;
    // A tool without a name could not be called.
    if (typeof name !== "string") return [];
    return [
      {
        name,
        title: typeof title === "string" ? title : undefined,
        description: typeof description === "string" ? description : undefined,
        inputSchema: objectSchema(inputSchema),
        annotations: isJsonObject(annotations) ? flagsOf(annotations) : undefined,
      },
    ];
  });
}

function objectSchema(schema: unknown): JsonObject {
  const { properties, required, $schema, ...rest } = toObject(schema);
  return {
    ...rest,
    ...(typeof $schema === "string" ? { $schema } : {}),
    ...(isJsonObject(properties) ? { properties } : {}),
    ...(Array.isArray(required) && required.every((name) => typeof name === "string") ? { required } : {}),
    type: "object",
  };
}

const flagsOf = (annotations: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(annotations).filter(([, value]) => typeof value === "boolean"));

type Keeper = Pick<ToolContext, "memory" | "maskWindow">;
type Shown = string | { readonly text: string; readonly file: FilePart };

/** A server's result as a tool's: text unchanged, images as files, everything else described in words. */
export async function toolResult(
  { content, structuredContent, isError }: CallToolResult,
  context: Keeper,
): Promise<ToolResult> {
  const parts: Shown[] = [];
  for (const block of content) parts.push(await show(block, context));
  const texts = parts.map((part) => (typeof part === "string" ? part : part.text));
  const json = structuredContent === undefined ? undefined : JSON.stringify(structuredContent);
  // Servers should say the same as text, for clients that know no other.
  if (json !== undefined && !texts.some((text) => isSameJson(text, json))) texts.push(json);
  const files = parts.flatMap((part) => (typeof part === "string" ? [] : [part.file]));
  return {
    text: texts.join("\n") || "[an empty result]",
    files: files.length === 0 ? undefined : files,
    isError: isError === true ? isError : undefined,
  };
}

function isSameJson(text: string, json: string): boolean {
  try {
    return JSON.stringify(JSON.parse(text)) === json;
  } catch {
    return false;
  }
}

async function show(block: ContentBlock, context: Keeper): Promise<Shown> {
  switch (block.type) {
    case "text":
      return block.text;
    case "image":
      return showBytes(block.data, block.mimeType, "image", context);
    case "audio":
      return `[audio (${oneLine(block.mimeType, 80)}): not shown]`;
    case "resource_link": {
      const { name, uri, description, mimeType } = block;
      const about = [mimeType, description].filter((part) => part !== undefined).join(": ");
      return `[resource ${oneLine(name, 200)}: ${oneLine(uri, 500)}${about === "" ? "" : ` (${oneLine(about, 500)})`}]`;
    }
    case "resource": {
      const { resource } = block;
      const uri = oneLine(resource.uri, 500);
      return "text" in resource
        ? `[resource ${uri}]\n${resource.text}`
        : showBytes(resource.blob, resource.mimeType ?? "unknown type", `resource ${uri}`, context);
    }
    default:
      return "[a part of the result is of an unknown kind: not shown]";
  }
}

async function showBytes(base64: string, claimedType: string, name: string, context: Keeper): Promise<Shown> {
  const bytes = Buffer.from(base64, "base64");
  const facts = `${name} (${detectImageType(bytes) ?? oneLine(claimedType, 80)}, ${showSize(bytes.length)})`;
  if (detectImageType(bytes) === undefined)
    return `[${facts}: not shown, it is not a PNG, JPEG, GIF or WebP image]`;
  if (bytes.length > MAX_IMAGE_BYTES)
    return `[${facts}: not shown, at most ${showSize(MAX_IMAGE_BYTES)} can be]`;
  const stored = await storeImage(bytes, `the ${name}`, context);
  return typeof stored === "string" ? `[${stored}]` : { text: `[${facts}]`, file: stored };
}
