/** The one way to cut text: on code points, so that no half of a character is left. Pure. */

/** The longest beginning of at most `max` UTF-16 units that does not end inside a code point. */
export function cutChars(text: string, max: number): string {
  if (text.length <= max) return text;
  if (max <= 0) return "";
  return text.slice(0, isSplit(text, max) ? max - 1 : max);
}

/** The longest end of at most `max` UTF-16 units that does not begin inside a code point. */
export function cutTail(text: string, max: number): string {
  if (text.length <= max) return text;
  if (max <= 0) return "";
  const start = text.length - max;
  return text.slice(isSplit(text, start) ? start + 1 : start);
}

/** A text of at most `max` UTF-16 units, the last of them an ellipsis if something was cut off. */
export function shorten(text: string, max: number): string {
  return text.length <= max ? text : `${cutChars(text, max - 1)}…`;
}

/**
 * The code points that begin in `[from, from + max)`: consecutive pages, each from the `end` of the one before, hold each
 * character exactly once. A page may be one UTF-16 unit longer than `max`.
 */
export function pageOf(text: string, from: number, max: number): { text: string; end: number } {
  const start = isSplit(text, from) ? from + 1 : from;
  const last = Math.min(text.length, Math.max(start, from + max));
  const end = isSplit(text, last) ? last + 1 : last;
  return { text: text.slice(start, end), end };
}

/** Whether a cut at `index` would part the two halves of a character. */
function isSplit(text: string, index: number): boolean {
  return isHigh(text.charCodeAt(index - 1)) && isLow(text.charCodeAt(index));
}

function isHigh(unit: number): boolean {
  return unit >= 0xd8_00 && unit <= 0xdb_ff;
}

function isLow(unit: number): boolean {
  return unit >= 0xdc_00 && unit <= 0xdf_ff;
}
