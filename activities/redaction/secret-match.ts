/** Whether a secret's form or a token begins at a place in a text that may continue. Pure. */
import type { Gap, SecretForm } from "./secret-forms.ts";
import type { Run, TokenRule } from "./token-rules.ts";

/** No match. */
export const NO = -1;
/** Undecided until more text arrives. */
export const OPEN = -2;

/** In characters. Source: what encoders put between two characters; a longer gap means different text. */
const MAX_GAP = { none: 0, invisible: 8, wrap: 24, separators: 8 } as const;
const MAX_BACKSLASHES = 16;

const BACKSLASH = 0x5c;
const INVISIBLE =
  "\n\r\u00ad\u034f\u061c\u180e\u200b\u200c\u200d\u200e\u200f\u2060\u2061\u2062\u2063\u2064\ufeff\u2400";
const SEPARATORS = " \t\n\r:,;.-_|%$xX\\";
/** The characters that a gap of each kind may begin with. */
export const GAP_STARTS: Readonly<Record<Gap, string>> = {
  none: "",
  invisible: INVISIBLE,
  wrap: "\n\r\\",
  separators: `${SEPARATORS}0`,
};

/** A form compiled for matching. */
export interface Pattern {
  readonly units: readonly Unit[];
  readonly gap: Gap;
}

/** The spellings of a unit, grouped by their first character. */
interface Unit {
  readonly first: number;
  /** Characters that stand for themselves. */
  readonly chars: readonly number[];
  /** Longer spellings, in lower case. */
  readonly long: readonly string[];
  /** Spellings that begin with backslashes, without these. */
  readonly escaped: readonly string[];
}

/** Equal units share one object: a long secret has many of them. */
export function createCompiler(): (form: SecretForm) => Pattern {
  const known = new Map<string, Unit>();
  const compile = (spellings: readonly string[]): Unit => {
    const key = spellings.join("\0");
    const unit = known.get(key) ?? unitOf(spellings);
    known.set(key, unit);
    return unit;
  };
  return ({ units, gap }) => ({ units: units.map(compile), gap });
}

function unitOf(spellings: readonly string[]): Unit {
  const chars = spellings
    .filter((spelling) => spelling.length === 1 && spelling !== "\\")
    .map((spelling) => spelling.charCodeAt(0));
  return {
    first: chars[0] ?? -1,
    chars,
    long: spellings
      .filter((spelling) => spelling.length > 1 && !spelling.startsWith("\\"))
      .map((spelling) => spelling.toLowerCase()),
    escaped: spellings
      .filter((spelling) => spelling.startsWith("\\"))
      .map((spelling) => spelling.slice(1).toLowerCase()),
  };
}

/** @returns where the form ends that begins at `at`; `NO`, or `OPEN` unless the text is `whole` */
export function matchForm({ units, gap }: Pattern, text: string, at: number, whole: boolean): number {
  let end = at;
  for (let index = 0; index < units.length; index += 1) {
    const unit = units[index] as Unit;
    if (text.charCodeAt(end) === unit.first) {
      end += 1;
      continue;
    }
    let next = matchUnit(unit, text, end, whole);
    if (next === NO && index > 0 && gap !== "none") {
      const after = afterGap(gap, text, end, whole);
      if (after === end) return NO;
      next = after < 0 ? after : matchUnit(unit, text, after, whole);
    }
    if (next < 0) return next;
    end = next;
  }
  return end;
}

function matchUnit({ chars, long, escaped }: Unit, text: string, at: number, whole: boolean): number {
  if (at >= text.length) return whole ? NO : OPEN;
  const code = text.charCodeAt(at);
  if (chars.includes(code)) return at + 1;
  if (code === BACKSLASH && escaped.length > 0) {
    const after = afterBackslashes(text, at);
    if (after === text.length && !whole) return OPEN;
    return matchOne(escaped, text, after, whole);
  }
  return long.length === 0 ? NO : matchOne(long, text, at, whole);
}

function matchOne(spellings: readonly string[], text: string, at: number, whole: boolean): number {
  for (const spelling of spellings) {
    const end = matchSpelling(spelling, text, at, whole);
    if (end !== NO) return end;
  }
  return NO;
}

function matchSpelling(spelling: string, text: string, at: number, whole: boolean): number {
  let end = at;
  for (let index = 0; index < spelling.length; index += 1) {
    if (end >= text.length) return whole ? NO : OPEN;
    const wanted = spelling.charCodeAt(index);
    if (wanted === BACKSLASH) {
      const after = afterBackslashes(text, end);
      if (after === end) return NO;
      if (after === text.length && !whole) return OPEN;
      end = after;
    } else if (lower(text.charCodeAt(end)) === wanted) end += 1;
    else return NO;
  }
  return end;
}

function afterBackslashes(text: string, at: number): number {
  let end = at;
  while (end - at < MAX_BACKSLASHES && text.charCodeAt(end) === BACKSLASH) end += 1;
  return end;
}

function afterGap(gap: Gap, text: string, at: number, whole: boolean): number {
  let end = at;
  while (end - at < MAX_GAP[gap]) {
    // In a wrapped text, blanks belong to the gap only after a line's end.
    const isIndent = gap === "wrap" && end > at && /[ \t]/.test(text.charAt(end));
    const next = isIndent ? end + 1 : afterSeparator(gap, text, end, whole);
    if (next < 0) return next;
    if (next === end) break;
    end = next;
  }
  return end;
}

function afterSeparator(gap: Gap, text: string, at: number, whole: boolean): number {
  if (at >= text.length) return at;
  switch (gap) {
    case "none":
      return at;
    case "invisible":
      return INVISIBLE.includes(text.charAt(at)) ? at + 1 : at;
    case "separators":
      return afterByteSeparator(text, at, whole);
    case "wrap":
      return afterLineEnd(text, at, whole);
  }
}

function afterByteSeparator(text: string, at: number, whole: boolean): number {
  const char = text.charAt(at);
  if (SEPARATORS.includes(char)) return at + 1;
  // `0x` in front of the next byte.
  if (char !== "0") return at;
  if (at + 1 === text.length && !whole) return OPEN;
  return text.charAt(at + 1).toLowerCase() === "x" ? at + 2 : at;
}

/** A line's end, or its escape in a string: `\n` behind any number of backslashes. */
function afterLineEnd(text: string, at: number, whole: boolean): number {
  const char = text.charAt(at);
  if (char === "\n" || char === "\r") return at + 1;
  if (char !== "\\") return at;
  const after = afterBackslashes(text, at);
  if (after === text.length && !whole) return OPEN;
  const escape = text.charAt(after);
  return escape === "n" || escape === "r" ? after + 1 : at;
}

export interface TokenMatch {
  /** Where it ends; `NO` or `OPEN`. One that reaches the text's end may continue: see `goesOn`. */
  readonly end: number;
  /** Where the value begins: the text before it stays readable. */
  readonly from: number;
}

/** Whether a token begins at `at`. */
export function matchToken(rule: TokenRule, text: string, at: number, whole: boolean): TokenMatch {
  let end = at;
  let from = at;
  for (const [index, part] of rule.parts.entries()) {
    if (index === rule.shown) from = end;
    if (typeof part === "string") end = matchLiteral({ part, caseless: rule.caseless }, text, end, whole);
    else {
      // The last run is masked as soon as it is long enough, however long it becomes.
      const enough = index === rule.parts.length - 1 ? part.min : part.max;
      end = matchRun(part, text, end, whole ? 0 : enough);
    }
    if (end < 0) break;
  }
  return { end, from };
}

interface Literal {
  readonly part: string;
  readonly caseless: boolean;
}

function matchLiteral({ part, caseless }: Literal, text: string, at: number, whole: boolean): number {
  for (let index = 0; index < part.length; index += 1) {
    if (at + index >= text.length) return whole ? NO : OPEN;
    const code = text.charCodeAt(at + index);
    const wanted = part.charCodeAt(index);
    if (caseless ? lower(code) !== lower(wanted) : code !== wanted) return NO;
  }
  return at + part.length;
}

/** @param enough length from which a run that reaches the text's end is a match */
function matchRun(run: Run, text: string, at: number, enough: number): number {
  const length = runLength(run, text, at);
  if (at + length === text.length && length < enough) return OPEN;
  return length < run.min ? NO : at + length;
}

/** How many characters at the beginning of `text` continue a token that reached the end of the preceding text. */
export function goesOn(run: Run, text: string): number {
  return runLength(run, text, 0);
}

function runLength({ chars, max }: Run, text: string, at: number): number {
  const last = Math.min(text.length, at + max);
  let end = at;
  while (end < last && chars[text.charCodeAt(end)] === 1) end += 1;
  return end - at;
}

/** The code of an ASCII letter in lower case. */
function lower(code: number): number {
  return code >= 0x41 && code <= 0x5a ? code | 0x20 : code;
}
