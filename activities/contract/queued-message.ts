/** A waiting message as announced to watchers. Pure: the workflow creates it. */
import { cutChars, shorten } from "./cut-text.ts";
import type { Guidance } from "./guidance.ts";
import type { FilePart, UserPart } from "./message.ts";

const EXCERPT_CHARS = 200;
/** Of a part: more than an excerpt takes, whatever its blanks. */
const READ_CHARS = 2_000;
/** What the run hands on: a secret that begins in the excerpt is whole in it, so that it is masked before the cut. */
const RAW_CHARS = 500;

export interface QueuedMessage {
  readonly id: string;
  /** From 1. */
  readonly position: number;
  readonly excerpt: string;
  /** Who said it, if the sender's client reported it. */
  readonly by?: string;
}

export interface AnnounceQueuedInput {
  /** Steps finished. */
  readonly step: number;
  readonly messages: readonly (Omit<QueuedMessage, "excerpt"> & {
    /** Its beginning as it came. */
    readonly text: string;
    /** Stored apart: the excerpt begins with its words. */
    readonly longText?: FilePart;
  })[];
}

/** A message's beginning on one line, for people. */
export function excerptOf(parts: readonly UserPart[]): string {
  return shorten(wordsOf(parts).replace(/\s+/g, " ").trim(), EXCERPT_CHARS);
}

function wordsOf(parts: readonly UserPart[]): string {
  const words = parts.map((part) =>
    part.type === "text" ? cutChars(part.text, READ_CHARS) : `[${part.filename ?? part.mediaType}]`,
  );
  return words.join(" ");
}

/** @param position from 1: its place among those that wait */
export function queuedMessage(
  { id, by, parts }: Pick<Guidance, "id" | "parts" | "by">,
  position: number,
): AnnounceQueuedInput["messages"][number] {
  const longText = parts.find(isStoredText);
  return {
    id,
    position,
    text: cutChars(wordsOf(parts).trim(), RAW_CHARS),
    ...(by === undefined ? {} : { by }),
    ...(longText ? { longText } : {}),
  };
}

/** Of other text files only the names are shown. */
function isStoredText(part: UserPart): part is FilePart {
  return part.type === "file" && part.mediaType === "text/plain" && part.data.length < 100;
}
