/** A waiting message as announced to watchers. Pure: the workflow creates it. */
import { cutChars, shorten } from "./cut-text.ts";
import type { Guidance } from "./guidance.ts";
import type { FilePart, UserPart } from "./message.ts";

const EXCERPT_CHARS = 200;
/** Limit per part: more than an excerpt takes, whatever its whitespace. */
const READ_CHARS = 2_000;
/** Length that the run passes on: a secret that starts in the excerpt is complete in it, so it is masked before the cut. */
const RAW_CHARS = 500;

export interface QueuedMessage {
  readonly id: string;
  /** From 1. */
  readonly position: number;
  readonly excerpt: string;
  /** Who sent it, if the sender's client reported that. */
  readonly by?: string;
}

export interface AnnounceQueuedInput {
  /** Steps finished. */
  readonly step: number;
  readonly messages: readonly (Omit<QueuedMessage, "excerpt"> & {
    /** The raw beginning of the message. */
    readonly text: string;
    /** Text stored separately: the excerpt starts with it. */
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

/** @param position from 1, among the waiting messages */
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

/** The name of a long text that is stored as a file. */
export const LONG_TEXT_NAME = "message.txt";

/** Text stored as a separate file. Other text files show only their names. */
function isStoredText(part: UserPart): part is FilePart {
  return (
    part.type === "file" &&
    part.mediaType === "text/plain" &&
    (part.filename ?? LONG_TEXT_NAME) === LONG_TEXT_NAME &&
    part.data.length < 100
  );
}
