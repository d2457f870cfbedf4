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
