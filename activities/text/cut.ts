/** The one way to cut text: at code points, so that no character is split. */

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
export function pageOf(text: string, from: number, max: number): { text: string; end: number } {
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
