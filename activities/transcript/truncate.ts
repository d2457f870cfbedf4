/** Cuts text that is too long: head and tail stay, the middle goes, and a notice says how to read it. Pure. */
import { cutChars, cutTail } from "../contract/cut-text.ts";

export const TRUNCATION_MARK = "[Output truncated - exceeded maximum length]";

export interface TruncateOptions {
  /** Longest result in characters (UTF-16 units), the notice included. */
  readonly maxChars: number;
  readonly maxLines?: number;
  /** Names the whole output for `read_output`. */
  readonly handle?: string;
  /** Size of the whole if `text` is only a part of it: its head and its tail, the middle left out. */
  readonly wholeChars?: number;
}

export interface Truncation {
  readonly text: string;
  readonly truncated: boolean;
  /** Which limit was hit first; undefined if nothing was cut. */
  readonly limit: "chars" | "lines" | undefined;
  readonly totalChars: number;
  /** Lines of `text` as it came. */
  readonly totalLines: number;
  readonly cutChars: number;
  readonly cutLines: number;
}

/** Share of the room that the head gets. Failures stand at the end, so the tail gets more (Gemini keeps 20/80). */
const HEAD_SHARE = 0.4;
/** Room that the notice may take. */
const NOTICE_CHARS = 240;

/**
 * Head and tail of a text within the limits, with a notice between them that says what is missing and how to read it.
 * A text within the limits comes back as it is. The result is never longer than `maxChars`.
 * Source: requirement 4.4, survey of coding agents.
 */
export function truncateText(text: string, options: TruncateOptions): Truncation {
  const totalLines = countLines(text);
  const totalChars = Math.max(text.length, options.wholeChars ?? 0);
  const partial = totalChars > text.length;
  const byLines = lineCuts(text, totalLines, options.maxLines);
  const fits = text.length <= options.maxChars;
  if (fits && byLines === undefined && !partial) {
    return { text, truncated: false, limit: undefined, totalChars, totalLines, cutChars: 0, cutLines: 0 };
  }
  const room = Math.max(0, options.maxChars - NOTICE_CHARS);
  // The ends of a longer text that fit as they are: nothing more is cut, only reported.
  const endsFit = partial && byLines === undefined && text.length <= room;
  const { head, tail } = endsFit
    ? { head: text, tail: "" }
    : split(byLines ?? { head: text, tail: text }, room);
  const missingChars = totalChars - head.length - tail.length;
  const cutLines = Math.max(0, totalLines - countLines(head) - countLines(tail));
  const notice = noticeOf({ cutChars: missingChars, totalChars, cutLines, partial, handle: options.handle });
  const parts = [trimEndNewline(head), notice, trimStartNewline(tail)].filter((part) => part !== "");
  return {
    text: cutChars(parts.join("\n"), options.maxChars),
    truncated: true,
    limit: byLines !== undefined && fits ? "lines" : "chars",
    totalChars,
    totalLines,
    cutChars: missingChars,
    cutLines,
  };
}

function split(wanted: { head: string; tail: string }, room: number): { head: string; tail: string } {
  if (wanted.head.length + wanted.tail.length <= room) return wanted;
  const headRoom = Math.min(wanted.head.length, Math.floor(room * HEAD_SHARE));
  return { head: cutChars(wanted.head, headRoom), tail: cutTail(wanted.tail, room - headRoom) };
}

function lineCuts(
  text: string,
  totalLines: number,
  maxLines: number | undefined,
): { head: string; tail: string } | undefined {
  if (maxLines === undefined || totalLines <= maxLines) return undefined;
  const headLines = Math.floor(maxLines / 2);
  const lines = text.split("\n");
  const end = text.endsWith("\n") ? lines.length - 1 : lines.length;
  return {
    head: lines.slice(0, headLines).join("\n"),
    tail: lines.slice(end - (maxLines - headLines)).join("\n"),
  };
}

function noticeOf(cut: {
  cutChars: number;
  totalChars: number;
  cutLines: number;
  partial: boolean;
  handle: string | undefined;
}): string {
  const lines = cut.cutLines > 0 && !cut.partial ? ` (${count(cut.cutLines)} lines)` : "";
  const whole = cut.handle === undefined ? "" : ` Read the whole: read_output handle="${cut.handle}"`;
  return `${TRUNCATION_MARK} ${count(cut.cutChars)} of ${count(cut.totalChars)} characters${lines} left out.${whole}`;
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

function trimEndNewline(text: string): string {
  return text.endsWith("\n") ? text.slice(0, -1) : text;
}

function trimStartNewline(text: string): string {
  return text.startsWith("\n") ? text.slice(1) : text;
}
