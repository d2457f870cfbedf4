/** A message that waits, as watchers are told of it. Pure: the workflow makes it. */
import { cutChars, shorten } from "./cut-text.ts";
import type { Guidance } from "./activities.ts";
import type { FilePart, UserPart } from "./message.ts";

const EXCERPT_CHARS = 200;
/** Of a part: more than an excerpt takes, whatever its blanks. */
const READ_CHARS = 2_000;

export interface QueuedMessage {
  readonly id: string;
  /** From 1. */
  readonly position: number;
  readonly excerpt: string;
  /** Who said it, where the sender's client told. */
  readonly by?: string;
}

export interface TellQueuedInput {
  /** Steps finished. */
  readonly step: number;
  readonly messages: readonly (QueuedMessage & {
    /** Stored apart: the excerpt is to begin with its words. */
    readonly longText?: FilePart;
  })[];
}

/** A message's beginning on one line, for people. */
export function excerptOf(parts: readonly UserPart[]): string {
  const words = parts.map((part) =>
    part.type === "text" ? cutChars(part.text, READ_CHARS) : `[${part.filename ?? part.mediaType}]`,
  );
  return shorten(words.join(" ").replace(/\s+/g, " ").trim(), EXCERPT_CHARS);
}

/** @param position from 1: its place among those that wait */
export function queuedMessage(
  { parts, ...named }: Pick<Guidance, "id" | "parts" | "by">,
  position: number,
): TellQueuedInput["messages"][number] {
  const longText = parts.find(isStoredText);
  return { ...named, position, excerpt: excerptOf(parts), ...(longText ? { longText } : {}) };
}

/** Other text files are told of by their names. */
function isStoredText(part: UserPart): part is FilePart {
  return part.type === "file" && part.mediaType === "text/plain" && part.data.length < 100;
}
