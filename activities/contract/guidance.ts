/**
 * Messages from a person while the agent works: which are accepted, how they are announced, and how a signal's content becomes items of
 * the queue, of known fields only and each small enough for a payload.
 */
import type { UserPart, FilePart } from "./message.ts";
import { personName, cleanText } from "../text/clean.ts";
import { cutChars, shorten } from "../text/cut.ts";
import { estimateMessage } from "./request-size.ts";

/** A person's message while the agent works. `id` is the sender's: repeated ids are ignored. */
export interface Guidance {
  readonly id: string;
  readonly parts: readonly UserPart[];
  /** ISO time at which the workflow received it. */
  readonly queuedAt: string;
  /** Who sent it, if the sender's client reported that. */
  readonly by?: string;
}

/** Longest text of one message, in characters (1 Mi). Source: Codex's queue. */
export const MAX_GUIDANCE_CHARS = 1_048_576;

/** Whether a message is empty: no file, and no text but whitespace. */
export function isEmptyMessage(parts: readonly UserPart[]): boolean {
  return parts.every((part) => part.type === "text" && part.text.trim() === "");
}

/** Why a message cannot be queued, worded for its sender; undefined if it can. */
export function partsRefusal(parts: readonly UserPart[]): string | undefined {
  if (isEmptyMessage(parts))
    return "The message is empty: nothing was queued. Write a text, or attach a file.";
  const chars = parts.reduce((sum, part) => sum + (part.type === "text" ? part.text.length : 0), 0);
  if (chars > MAX_GUIDANCE_CHARS) {
    return `The message has ${chars} characters, more than ${MAX_GUIDANCE_CHARS}: nothing was queued. Put it in a file of the workspace and name that file.`;
  }
  return undefined;
}

/** A message's sender as a field that is absent if unknown. */
export function senderOf(message: unknown): { readonly by?: string } {
  if (typeof message !== "object" || message === null || !("by" in message)) return {};
  const by = personName(message.by);
  return by === undefined ? {} : { by };
}

const EXCERPT_CHARS = 200;
/** Limit per part: more than an excerpt takes, whatever its whitespace. */
const READ_CHARS = 2_000;

/** A waiting message as announced to watchers. */
export interface QueuedMessage {
  readonly id: string;
  /** From 1. */
  readonly position: number;
  readonly excerpt: string;
  /** Who sent it, if the sender's client reported that. */
  readonly by?: string;
}

/** A message that waits in Postgres, as a run knows it. */
export interface WaitingMessage {
  readonly id: string;
  /** Estimated tokens of what is in its row: text that is stored as a blob is not counted. */
  readonly tokens: number;
}

export interface StoreGuidanceInput {
  /** Steps finished. */
  readonly step: number;
  /** In order of arrival. */
  readonly items: readonly Guidance[];
}

export interface StoredGuidance {
  /** Ids of those that were delivered or withdrawn before. */
  readonly over?: readonly string[];
}

/** What an activity did with the messages that waited. */
export interface GuidanceDelivery {
  /** Ids of those that it delivered. */
  readonly taken?: readonly string[];
  /** The oldest of those that wait for the next step: there were more than one step takes. */
  readonly left?: readonly WaitingMessage[];
}

/** The most waiting messages that a result names. */
export const MAX_NAMED = 100;
/** Of ids in one list of a result. */
export const MAX_ID_BYTES = 16_000;

/** As many of the oldest waiting messages as a result may name. */
export function namedWaiting(items: readonly Guidance[]): WaitingMessage[] {
  let bytes = 0;
  return items
    .slice(0, MAX_NAMED)
    .filter(({ id }) => (bytes += jsonBytes(id) + ITEM_BYTES) <= MAX_ID_BYTES)
    .map(({ id, parts }) => ({ id, tokens: estimateMessage({ role: "user", content: parts }) }));
}

/** A message's beginning on one line, for people. */
export function toExcerpt(parts: readonly UserPart[]): string {
  return shorten(wordsOf(parts).replace(/\s+/g, " ").trim(), EXCERPT_CHARS);
}

function wordsOf(parts: readonly UserPart[]): string {
  const texts = parts.map((part) =>
    part.type === "text" ? cutChars(part.text, READ_CHARS) : `[${part.filename ?? part.mediaType}]`,
  );
  return texts.join(" ");
}

/** The name of a long text that is stored as a file. */
export const LONG_TEXT_NAME = "message.txt";

/** Text stored as a separate file. Other text files show only their names. */
export function isStoredText(part: UserPart): part is FilePart {
  return (
    part.type === "file" &&
    part.mediaType === "text/plain" &&
    (part.filename ?? LONG_TEXT_NAME) === LONG_TEXT_NAME &&
    part.data.length < 100
  );
}

/** This many unreadable parts are named one by one; further ones are only counted. */
const MAX_NOTES = 20;
/** Size limit of one item as JSON: an activity's input that carries it stays far below the 64 KB guard. */
export const MAX_ITEM_BYTES = 16_000;
const MAX_NAME_CHARS = 200;
/** Quotes, names of fields and the time of an item; of a part. */
const ITEM_BYTES = 70;
const PART_BYTES = 40;

/**
 * The parts of a sent message; a bare string counts as text. A part that is not understood becomes a text that says
 * so. Undefined if the value is not a message at all.
 */
export function partsOf(message: unknown): readonly UserPart[] | undefined {
  if (typeof message === "string") return [textPart(message)];
  if (typeof message !== "object" || message === null) return undefined;
  const { text, parts } = message as { readonly text?: unknown; readonly parts?: unknown };
  const textParts = typeof text === "string" ? [textPart(text)] : [];
  const rawParts: unknown = parts ?? [];
  const sent: readonly unknown[] = Array.isArray(rawParts) ? rawParts : [rawParts];
  const known = sent.map(partOf);
  if (known.every((part) => part === undefined) && isEmptyMessage(textParts)) return undefined;
  return [...textParts, ...withNotes(sent, known)];
}

/**
 * Limits the notes: a 2 MB signal may have a million unreadable parts, whose notes would exceed what a workflow task
 * can hold.
 */
function withNotes(sent: readonly unknown[], known: readonly (UserPart | undefined)[]): UserPart[] {
  let left = 0;
  const parts = known.flatMap((part, index) => {
    if (part !== undefined) return [part];
    left += 1;
    return left > MAX_NOTES ? [] : [notUnderstood(sent[index])];
  });
  if (left > MAX_NOTES)
    parts.push(textPart(`[${left - MAX_NOTES} more parts could not be read and were left out.]`));
  return parts;
}

const textPart = (text: string): UserPart => ({ type: "text", text: cleanText(text) });

/** Keeps only known fields of a part: unknown ones would be sent to the provider unchanged. */
function partOf(part: unknown): UserPart | undefined {
  if (typeof part !== "object" || part === null || !("type" in part)) return undefined;
  if (part.type === "text")
    return "text" in part && typeof part.text === "string" ? textPart(part.text) : undefined;
  if (part.type !== "file" && part.type !== "image") return undefined;
  const data = firstText(part, ["data", "image", "url"]);
  // The data URL may state its media type. The activity that stores the file determines the real one.
  const mediaType =
    firstText(part, ["mediaType", "mimeType"]) ?? (data === undefined ? undefined : typeIn(data));
  if (data === undefined || (mediaType === undefined && part.type === "file")) return undefined;
  const filename = firstText(part, ["filename"]);
  return {
    type: "file",
    data: cleanText(data),
    mediaType: nameOf(mediaType ?? "image/*"),
    filename: filename === undefined ? undefined : nameOf(filename),
  };
}

function firstText(part: object, names: readonly string[]): string | undefined {
  const fields = new Map<string, unknown>(Object.entries(part));
  return names.map((name) => fields.get(name)).find((value) => typeof value === "string");
}

/** The media type of a data URL. */
function typeIn(data: string): string | undefined {
  return /^data:([^;,]{1,200})[;,]/.exec(cutChars(data, 300))?.[1];
}

/** A name or an id: well-formed, without control characters, bounded. */
function nameOf(text: string): string {
  return cutChars(cleanText(text), MAX_NAME_CHARS);
}

function notUnderstood(part: unknown): UserPart {
  const type = typeof part === "object" && part !== null ? firstText(part, ["type"]) : undefined;
  const what =
    type === undefined ? "A part" : `A part of the type ${JSON.stringify(cutChars(cleanText(type), 40))}`;
  return textPart(
    `[${what} came with this message and was left out, because it could not be read. A file is sent as {"type": "file", "mediaType": "image/png", "data": "<base64>"}, or with \`longhaul say --file\`.]`,
  );
}

/** The sender's id if it is valid and not one of our own, at most 200 characters. */
export function idOf(message: unknown): string | undefined {
  if (typeof message !== "object" || message === null || !("id" in message)) return undefined;
  if (typeof message.id !== "string") return undefined;
  const id = nameOf(message.id);
  return id === "" || isOwnMessage(id) ? undefined : id;
}

/**
 * The id of the message with which a follower tells a round. Nobody else can choose it: a client's id has no `@`, and a signal's of this
 * form counts as none.
 */
export const roundMessageId = (round: number): string => `follow@${round}`;

/** The id of the message with which a review begins, chosen by nobody else either. */
export const REVIEW_MESSAGE_ID = "review@1";

/** Whether a message of a session's queue, or a piece of one, is a follower's. */
export const isRoundMessage = (id: string): boolean => /^follow@\d+(#\d+)?$/.test(id);

const isOwnMessage = (id: string): boolean =>
  isRoundMessage(id) || id === REVIEW_MESSAGE_ID || id.startsWith(`${REVIEW_MESSAGE_ID}#`);

/**
 * Ids for messages sent without one, as from the Web UI: derived from the content and from how often the run received
 * it. A reset that applies the same signals again yields the same ids, as does a reader of the run's history.
 * @param run distinguishes the run from all others, and is the same after a reset to a point in it
 */
export function createUnnamedIds(run: string): (parts: readonly UserPart[]) => string {
  const counts = new Map<string, number>();
  return (parts) => {
    const content = hashOf(JSON.stringify(parts));
    const count = (counts.get(content) ?? 0) + 1;
    counts.set(content, count);
    return `unnamed-${hashOf(`${run} ${content} ${count}`)}`;
  };
}

/** 64 bits as hex: FNV-1a twice, from different offsets. It distinguishes texts; it does not resist attacks. */
function hashOf(text: string): string {
  let low = 0x811c9dc5;
  let high = 0x9747b28c;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    low = Math.imul(low ^ code, 0x01000193);
    high = Math.imul(high ^ code, 0x5bd1e995);
  }
  return [low, high].map((half) => (half >>> 0).toString(16).padStart(8, "0")).join("");
}

/**
 * One item, or several if the message is too large for one: a signal cannot be refused, and none of its text may be
 * lost. The first item has the message's id; the others have that id with their number.
 */
export function toGuidanceItems(
  id: string,
  parts: readonly UserPart[],
  queuedAt: string,
  sender: Pick<Guidance, "by"> = {},
): Guidance[] {
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
  return lists.map((list, index) => ({
    id: index === 0 ? id : `${id}#${index + 1}`,
    parts: list,
    queuedAt,
    ...sender,
  }));
}

function carried(part: UserPart): UserPart[] {
  if (partBytes(part) <= MAX_ITEM_BYTES) return [part];
  if (part.type === "text") return piecesOf(part.text).map((text) => ({ type: "text", text }));
  const text = `[A file (${part.mediaType}, ${part.data.length} characters) came with this message. It is too large for a signal and was not accepted: send it with \`longhaul say --file\`, or put it in the workspace.]`;
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

/** Size of the items as JSON in UTF-8, or slightly more. */
export function guidanceBytes(items: readonly Guidance[]): number {
  return items.reduce(
    (sum, { id, parts, by = "" }) =>
      parts.reduce(
        (bytes, part) => bytes + partBytes(part),
        sum + jsonBytes(id) + jsonBytes(by) + ITEM_BYTES,
      ),
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

/** Bytes of a text as JSON, without its quotes. */
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
