/** Reads the fields of a body, with the real service's errors. Pure. */
import { inflateSync } from "node:zlib";
import { invalid, invalidValue, wrongType } from "./refusal.ts";
import type { WirePart } from "./wire.ts";

export type Json = Record<string, unknown>;

export function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A field of what may not be an object. */
export function fieldOf(value: unknown, name: string): unknown {
  return isObject(value) ? value[name] : undefined;
}

/** Reads a field that must be text. @throws Refusal */
export function text(value: unknown, path: string): string {
  if (typeof value === "string") return value;
  throw wrongType(path, `a string, but got ${value === null ? "null" : typeof value} instead`);
}

/** Accepted image types, by their first bytes in hex. Source: OpenAI's vision guide. */
const IMAGE_SIGNATURES: readonly (readonly [string, RegExp])[] = [
  ["image/png", /^89504e470d0a1a0a/],
  ["image/jpeg", /^ffd8ff/],
  ["image/gif", /^474946383[79]61/],
  ["image/webp", /^52494646.{8}57454250/],
];

/** An image's type by its first bytes, whatever its declared type. */
export function imageTypeOf(base64: string): string | undefined {
  const head = Buffer.from(base64.slice(0, 64), "base64").toString("hex");
  return IMAGE_SIGNATURES.find(([, signature]) => signature.test(head))?.[0];
}

/** How many bytes a base64 text stands for. */
export function bytesIn(base64: string): number {
  return Math.floor((base64.replace(/=+$/, "").length * 3) / 4);
}

/** Whether it cannot be drawn, although it begins like an image: of a PNG, whether its pixels can be read. */
export function isDamaged(base64: string): boolean {
  if (imageTypeOf(base64) !== "image/png") return false;
  const bytes = Buffer.from(base64, "base64");
  const pixels: Buffer[] = [];
  for (let at = 8; at + 8 <= bytes.length; at += bytes.readUInt32BE(at) + 12)
    if (bytes.toString("latin1", at + 4, at + 8) === "IDAT")
      pixels.push(bytes.subarray(at + 8, at + 8 + bytes.readUInt32BE(at)));
  try {
    inflateSync(Buffer.concat(pixels));
    return false;
  } catch {
    return true;
  }
}

/** An image or file from its `data:` URL (or its plain URL). */
export function media(type: "image" | "file", url: unknown, path: string): WirePart {
  const value = text(url, path);
  const match = /^data:([^;,]+);base64,(.*)$/s.exec(value);
  if (match === null) {
    if (/^https?:/.test(value)) return { type, mediaType: "url", bytes: 0 };
    throw invalidValue(`Invalid '${path}'. Expected a valid URL or a base64 data URL.`, path);
  }
  const [, mediaType = "", base64 = ""] = match;
  const expected = type === "image" ? "image" : "application/pdf";
  const isKnown =
    type === "file" ? mediaType === expected : IMAGE_SIGNATURES.some(([known]) => known === mediaType);
  if (!isKnown) {
    throw invalidValue(
      `Invalid '${path}'. Expected a base64-encoded data URL with an ${expected} MIME type, but got unsupported MIME type '${mediaType}'.`,
      path,
    );
  }
  if (type === "image" && (imageTypeOf(base64) === undefined || isDamaged(base64))) {
    throw invalid(
      "The image data you provided does not represent a valid image. Please check your input and try again with one of the following image formats: ['image/jpeg', 'image/png', 'image/gif', 'image/webp'].",
      "invalid_image_format",
      path,
    );
  }
  return { type, mediaType, bytes: bytesIn(base64) };
}

export function plainText(parts: readonly WirePart[]): string {
  return parts.map((part) => (part.type === "text" ? part.text : "")).join("");
}
