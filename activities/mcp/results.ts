/** A server's result as a tool's. */
import type { CallToolResult, ContentBlock } from "@modelcontextprotocol/client";
import type { FilePart } from "../contract/message.ts";
import { imageTypeOf } from "../store/media.ts";
import { oneLine, showSize } from "../tools/paths.ts";
import { MAX_IMAGE_BYTES, storeImage } from "../tools/store-image.ts";
import type { ToolContext, ToolResult } from "../tools/tool.ts";

type Keeper = Pick<ToolContext, "memory" | "maskWindow">;
type Shown = string | { readonly text: string; readonly file: FilePart };

/** Text unchanged, images as files, everything else described in words. */
export async function toolResult(
  { content, structuredContent, isError }: CallToolResult,
  context: Keeper,
): Promise<ToolResult> {
  const shown: Shown[] = [];
  for (const block of content) shown.push(await show(block, context));
  const texts = shown.map((part) => (typeof part === "string" ? part : part.text));
  const json = structuredContent === undefined ? undefined : JSON.stringify(structuredContent);
  // Servers should say the same as text, for clients that know no other.
  if (json !== undefined && !texts.some((text) => isSameJson(text, json))) texts.push(json);
  const files = shown.flatMap((part) => (typeof part === "string" ? [] : [part.file]));
  return {
    text: texts.join("\n") || "[an empty result]",
    ...(files.length === 0 ? {} : { files }),
    ...(isError === true ? { isError } : {}),
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

async function showBytes(base64: string, given: string, name: string, context: Keeper): Promise<Shown> {
  const bytes = Buffer.from(base64, "base64");
  const facts = `${name} (${imageTypeOf(bytes) ?? oneLine(given, 80)}, ${showSize(bytes.length)})`;
  if (imageTypeOf(bytes) === undefined)
    return `[${facts}: not shown, it is not a PNG, JPEG, GIF or WebP image]`;
  if (bytes.length > MAX_IMAGE_BYTES)
    return `[${facts}: not shown, at most ${showSize(MAX_IMAGE_BYTES)} can be]`;
  const stored = await storeImage(bytes, `the ${name}`, context);
  return typeof stored === "string" ? `[${stored}]` : { text: `[${facts}]`, file: stored };
}
