/** What a person sent, as items of the queue: known fields only, each small enough to be carried. Pure. */
import type { UserPart } from "../activities/context/message.ts";
import type { Guidance } from "../activities/contract.ts";
import type { GuidanceMessage } from "./messages.ts";

/** Of one item, as JSON: an activity's input that carries it stays far below the 64 KB guard. */
export const MAX_ITEM_BYTES = 16_000;
const MAX_NAME_CHARS = 200;
/** Quotes, names of fields and the time of an item; of a part. */
const ITEM_BYTES = 60;
const PART_BYTES = 40;

/** What was sent, as parts: a bare string counts as text. Undefined for what is no message at all. */
export function partsOf(message: unknown): readonly UserPart[] | undefined {
  if (typeof message === "string") return [{ type: "text", text: message }];
  if (typeof message !== "object" || message === null) return undefined;
  const { text, parts } = message as GuidanceMessage;
  const known = Array.isArray(parts) ? parts.map(partOf) : undefined;
  if (typeof text === "string")
    return [{ type: "text", text }, ...(known ?? []).filter((part) => part !== undefined)];
  return known?.every((part) => part !== undefined) ? known : undefined;
}

/** Whatever else a part came with stays behind: it goes to the provider as it is. */
function partOf(part: unknown): UserPart | undefined {
  if (typeof part !== "object" || part === null || !("type" in part)) return undefined;
  if (part.type === "text" && "text" in part && typeof part.text === "string")
    return { type: "text", text: part.text };
  if (part.type !== "file" || !("data" in part) || !("mediaType" in part)) return undefined;
  const { data, mediaType } = part;
  if (typeof data !== "string" || typeof mediaType !== "string") return undefined;
  const filename = "filename" in part && typeof part.filename === "string" ? part.filename : undefined;
  return {
    type: "file",
    data,
    mediaType: mediaType.slice(0, MAX_NAME_CHARS),
    ...(filename === undefined ? {} : { filename: filename.slice(0, MAX_NAME_CHARS) }),
  };
}

/** The sender's id where it is one, at most 200 characters. */
export function idOf(message: unknown): string | undefined {
  if (typeof message !== "object" || message === null || !("id" in message)) return undefined;
  return typeof message.id === "string" && message.id !== ""
    ? message.id.slice(0, MAX_NAME_CHARS)
    : undefined;
}

/**
 * One item, or several for what is too large to be carried as one: a signal cannot be refused, and nothing of its words
 * is lost. The first bears the id, the others the id with their number.
 */
export function itemsOf(id: string, parts: readonly UserPart[], queuedAt: string): Guidance[] {
  const lists: UserPart[][] = [];
  let bytes = 0;
  for (const part of parts.flatMap(carried)) {
    const size = partBytes(part);
    const list = lists.at(-1);
    if (!list || bytes + size > MAX_ITEM_BYTES) {
      lists.push([part]);
      bytes = size;
    } else {
      list.push(part);
      bytes += size;
    }
  }
  return lists.map((list, index) => ({ id: index === 0 ? id : `${id}#${index + 1}`, parts: list, queuedAt }));
}

function carried(part: UserPart): UserPart[] {
  if (partBytes(part) <= MAX_ITEM_BYTES) return [part];
  if (part.type === "text") return piecesOf(part.text).map((text) => ({ type: "text", text }));
  const text = `[A file (${part.mediaType}, ${part.data.length} characters) came with this message. It is too large for a signal and was not taken: send it with \`longhaul say --image\`, or put it in the workspace.]`;
  return [{ type: "text", text }];
}

/** Cut on code points, each piece small enough for an item. */
function piecesOf(text: string): string[] {
  const pieces: string[] = [];
  let from = 0;
  let bytes = PART_BYTES;
  for (let at = 0; at < text.length;) {
    const code = text.codePointAt(at) ?? 0;
    const size = jsonBytesOf(code);
    if (bytes + size > MAX_ITEM_BYTES) {
      pieces.push(text.slice(from, at));
      from = at;
      bytes = PART_BYTES;
    }
    bytes += size;
    at += code > 0xffff ? 2 : 1;
  }
  pieces.push(text.slice(from));
  return pieces;
}

/** What items come to as JSON in UTF-8, or a little more. */
export function bytesOf(items: readonly Guidance[]): number {
  return items.reduce(
    (sum, { id, parts }) =>
      parts.reduce((bytes, part) => bytes + partBytes(part), sum + jsonBytes(id) + ITEM_BYTES),
    0,
  );
}

function partBytes(part: UserPart): number {
  if (part.type === "text") return PART_BYTES + jsonBytes(part.text);
  return (
    PART_BYTES +
    [part.data, part.mediaType, part.filename ?? ""].reduce((sum, text) => sum + jsonBytes(text), 0)
  );
}

/** Of a text as JSON, without its quotes. */
export function jsonBytes(text: string): number {
  let bytes = 0;
  for (let at = 0; at < text.length;) {
    const code = text.codePointAt(at) ?? 0;
    bytes += jsonBytesOf(code);
    at += code > 0xffff ? 2 : 1;
  }
  return bytes;
}

function jsonBytesOf(code: number): number {
  // Control characters and lone surrogates are written as \uXXXX.
  if (code < 0x20 || (code >= 0xd800 && code <= 0xdfff)) return 6;
  if (code === 0x22 || code === 0x5c) return 2;
  if (code < 0x80) return 1;
  if (code < 0x800) return 2;
  return code > 0xffff ? 4 : 3;
}
