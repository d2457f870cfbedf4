/** The one way to shorten text: at code points, so that no character is split, and with a notice that says what is missing. */
import type { KeptPart } from "./streams.ts";

/** The longest prefix of at most `max` UTF-16 units that does not end inside a code point. */
export function cutChars(text: string, max: number): string {
  if (text.length <= max) return text;
  if (max <= 0) return "";
  return text.slice(0, isSplit(text, max) ? max - 1 : max);
}

/** The longest suffix of at most `max` UTF-16 units that does not start inside a code point. */
export function cutTail(text: string, max: number): string {
  if (text.length <= max) return text;
  if (max <= 0) return "";
  const start = text.length - max;
  return text.slice(isSplit(text, start) ? start + 1 : start);
}

/** A text of at most `max` UTF-16 units, ending in an ellipsis if something was cut off. */
export function shorten(text: string, max: number): string {
  return text.length <= max ? text : `${cutChars(text, max - 1)}…`;
}

/**
 * The code points that start in `[from, from + max)`. Consecutive pages, each starting at the previous page's `end`,
 * hold each character exactly once. A page may be one UTF-16 unit longer than `max`.
 */
export function cutPage(text: string, from: number, max: number): { text: string; end: number } {
  const start = isSplit(text, from) ? from + 1 : from;
  const last = Math.min(text.length, Math.max(start, from + max));
  const end = isSplit(text, last) ? last + 1 : last;
  return { text: text.slice(start, end), end };
}

/** Whether a cut at `index` would split a surrogate pair. */
function isSplit(text: string, index: number): boolean {
  return isHigh(text.charCodeAt(index - 1)) && isLow(text.charCodeAt(index));
}

function isHigh(unit: number): boolean {
  return unit >= 0xd8_00 && unit <= 0xdb_ff;
}

function isLow(unit: number): boolean {
  return unit >= 0xdc_00 && unit <= 0xdf_ff;
}

/** Cuts text that is too long: head and tail stay, the middle goes, and a notice says how to read it. */
export const TRUNCATION_MARK = "[Output truncated - exceeded maximum length]";

interface TruncateOptions {
  /** Longest result in characters (UTF-16 units), the notice included. */
  readonly maxChars: number;
  /** Names the whole output for `read_output`. */
  readonly handle?: string;
  /** Size of the whole if `text` is only a part of it: its head and its tail, the middle left out. */
  readonly wholeChars?: number;
}

type Cut =
  | { readonly text: string; readonly truncated: false }
  | { readonly text: string; readonly truncated: true; readonly kept: readonly KeptPart[] };

/** Share of the room that the head gets. Failures are at the end, so the tail gets more (Gemini keeps 20/80). */
const HEAD_SHARE = 0.4;
/** Room that the notice may take. */
const NOTICE_CHARS = 240;

/**
 * Head and tail of a text within the limit, with a notice between them that says what is missing and how to read it.
 * A text within the limit is returned as it is. The result is never longer than `maxChars`. `kept` are the parts that stay.
 * Source: requirement 4.4.
 */
export function truncateText(text: string, { maxChars, handle, wholeChars = 0 }: TruncateOptions): Cut {
  const isPart = wholeChars > text.length;
  if (!isPart && text.length <= maxChars) return { text, truncated: false };
  const room = Math.max(0, maxChars - NOTICE_CHARS);
  const headRoom = Math.floor(room * HEAD_SHARE);
  // The ends of a longer text that fit as they are: nothing more is cut, only reported.
  const [head, tail] =
    text.length <= room ? [text, ""] : [cutChars(text, headRoom), cutTail(text, room - headRoom)];
  const totalChars = Math.max(text.length, wholeChars);
  const lines = isPart ? 0 : Math.max(0, countLines(text) - countLines(head) - countLines(tail));
  const notice = [
    `${TRUNCATION_MARK} ${count(totalChars - head.length - tail.length)} of ${count(totalChars)} characters`,
    lines === 0 ? "" : ` (${count(lines)} lines)`,
    " left out.",
    handle === undefined ? "" : ` Read the whole: read_output handle="${handle}"`,
  ].join("");
  const [first, last] = [head.replace(/\n$/, ""), tail.replace(/^\n/, "")];
  const parts = [first, notice, last].filter((part) => part !== "");
  return {
    text: cutChars(parts.join("\n"), maxChars),
    truncated: true,
    kept: [
      { from: 0, to: first.length, at: 0 },
      { from: text.length - last.length, to: text.length, at: parts.join("\n").length - last.length },
    ],
  };
}

/** Lines as people count them: a newline at the end opens no further line. */
export function countLines(text: string): number {
  if (text === "") return 0;
  let lines = text.endsWith("\n") ? 0 : 1;
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) lines += 1;
  return lines;
}

function count(value: number): string {
  return value.toLocaleString("en-US");
}
