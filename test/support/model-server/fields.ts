/** Reading the fields of a body, with the real service's words where one is wrong. Pure. */
import { Refusal } from "./refusal.ts";
import type { WirePart } from "./wire.ts";

export type Json = Record<string, unknown>;

export function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Reads a field that must be text. @throws Refusal */
export function text(value: unknown, path: string): string {
  if (typeof value === "string") return value;
  throw new Refusal(
    400,
    `Invalid type for '${path}': expected a string, but got ${value === null ? "null" : typeof value} instead.`,
    "invalid_type",
    path,
  );
}

/** An image or file from its `data:` URL (or its plain URL). */
export function media(type: "image" | "file", url: unknown, path: string): WirePart {
  const value = text(url, path);
  const match = /^data:([^;,]+)(?:;[^,]*)?,(.*)$/s.exec(value);
  if (match === null) {
    if (/^https?:/.test(value)) return { type, mediaType: "url", bytes: 0 };
    throw new Refusal(
      400,
      `Invalid '${path}'. Expected a valid URL or a base64 data URL.`,
      "invalid_value",
      path,
    );
  }
  const digits = (match[2] ?? "").replace(/=+$/, "").length;
  return { type, mediaType: match[1] ?? "", bytes: Math.floor((digits * 3) / 4) };
}

/** The parts of a message's content, each read by `partOf`. @throws Refusal */
export function contentParts(
  content: unknown,
  path: string,
  partOf: (part: Json, at: string) => WirePart,
): WirePart[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  if (!Array.isArray(content))
    throw new Refusal(
      400,
      `Missing required parameter: '${path}.content'.`,
      "missing_required_parameter",
      path,
    );
  return content.map((part: unknown, index) => {
    const at = `${path}.content[${index}]`;
    if (!isObject(part))
      throw new Refusal(400, `Invalid type for '${at}': expected an object.`, "invalid_type", at);
    return partOf(part, at);
  });
}
