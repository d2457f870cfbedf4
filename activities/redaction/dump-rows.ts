/**
 * Rows of a dump (`xxd`, `hexdump -C`, `od`): between the bytes of one row and those of the next stand the characters that the
 * bytes stand for, a line end and an offset. Pure.
 */
import type { SpelledText } from "./spelled-text.ts";

/** Longest column of characters, and longest rest of a row. Source: `xxd` writes at most 256 bytes in a row. */
const MAX_COLUMN = 260;
const MAX_REST = 1_300;
const OFFSET = String.raw`[ \t]*(?:0[xX])?[0-9a-fA-F]{4,16}:?[ \t]`;
const ROW_START = new RegExp(OFFSET, "y");
/** What may become one if more text follows. */
const OPEN_START = /[ \t]*(?:0[xX]?)?[0-9a-fA-F]{0,16}:?$/y;
const HAS_ROWS = new RegExp(String.raw`\n${OFFSET}`);
const LINE_END = "\n";

function endAt(pattern: RegExp, text: string, at: number): number | undefined {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : undefined;
}

/** Where the bytes of the next row begin, if a row's bytes end at this place, or its line does. */
export function nextRow(spelled: SpelledText, at: number): number | undefined {
  const { text } = spelled;
  let start = at;
  if (text[at - 1] !== LINE_END) {
    if (!isColumn(text, at)) return undefined;
    const column = text.slice(at, at + MAX_COLUMN);
    const length = column.indexOf(LINE_END);
    if (length === -1 && column.length === MAX_COLUMN) return undefined;
    start = length === -1 ? text.length : at + length + 1;
  }
  const found = endAt(ROW_START, text, start);
  if (found === undefined && endAt(OPEN_START, text, start) !== undefined) spelled.reachedEnd = true;
  return found;
}

/** The column of characters stands apart, or between bars. */
function isColumn(text: string, at: number): boolean {
  const char = text[at];
  return (
    char === "|" ||
    char === ">" ||
    (isBlank(text[at - 1]) && (isBlank(text[at - 2]) || text[at - 1] === "\t"))
  );
}

const isBlank = (char: string | undefined): boolean => char === " " || char === "\t";

/** Whether a match went over several rows. */
export const hasRows = (text: string): boolean => HAS_ROWS.test(text);

/** A secret of several rows is masked up to its last row's end: that has its characters once more. */
export function endOfRow(spelled: SpelledText, end: number): number {
  const { text } = spelled;
  const line = text.indexOf(LINE_END, end);
  const most = end + MAX_REST;
  if (line === -1 && text.length < most) spelled.reachedEnd = true;
  return Math.min(line === -1 ? text.length : line, most);
}
