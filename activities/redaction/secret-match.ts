/** Whether a secret's form or a token begins at a place in a text that may continue. */
import type { FormUnit, Gap, SecretForm } from "./secret-forms.ts";
import {
  endOfRow,
  hasRows,
  nextRow,
  isLead,
  LEAD_CHARS,
  type Reading,
  type SpelledText,
} from "./spelled-text.ts";
import type { CharRun, TokenRule } from "./token-rules.ts";

/** No match. */
export const NO = -1;
/** Undecided until more text arrives. */
export const OPEN = -2;

/** How many characters a gap may have. Source: an apostrophe that a shell quoted four times has 121; a dump's columns. */
const MAX_GAP = { quotes: 128, wrap: 24, separators: 8, columns: 8 } as const;

const INVISIBLE =
  "\n\r\u00ad\u034f\u061c\u180e\u200b\u200c\u200d\u200e\u200f\u2060\u2061\u2062\u2063\u2064\ufeff\u2400";
/** Quotes end and begin again around a character; `$` begins a quote, `^` and the backtick protect, `=` ends a mail's line. */
const QUOTES = "'\"`\\$^=";
const GAPS: Readonly<Record<Gap, string>> = {
  quotes: INVISIBLE + QUOTES,
  wrap: "\n\r\\=",
  separators: " \t\n\r:,;.-_|%$xX0\\\"'",
  columns: " \t\n\r",
};
/** The codes below 128 of each gap's characters, as a table, and the others. */
const gapCodes = (gap: Gap) => ({
  ascii: Uint8Array.from({ length: 128 }, (_none, code) =>
    Number(GAPS[gap].includes(String.fromCharCode(code))),
  ),
  others: Array.from(GAPS[gap], (char) => char.charCodeAt(0)).filter((code) => code > 127),
});
const ofEach = <T>(make: (gap: Gap) => T): Readonly<Record<Gap, T>> => ({
  quotes: make("quotes"),
  wrap: make("wrap"),
  separators: make("separators"),
  columns: make("columns"),
});
const GAP_CODES = ofEach(gapCodes);
const LINE_END = 0x0a;
const PLUS = 0x2b;
const isBlank = (code: number): boolean => code === 0x20 || code === 0x09;

/** Codes that stand for nothing but themselves and begin no gap. */
const ordinary = (gap: Gap): Uint8Array =>
  Uint8Array.from({ length: 128 }, (_none, code) =>
    Number(!isLead(code) && code !== PLUS && !isGap(gap, code, true)),
  );
/** The characters that a gap of each kind may begin with, in any spelling. */
export const GAP_STARTS = ofEach((gap): readonly string[] => [...Array.from(GAPS[gap]), ...LEAD_CHARS]);

const ORDINARY = ofEach(ordinary);

/** A form compiled for matching. */
export interface Pattern {
  /** The first two units. */
  readonly heads: readonly Unit[];
  readonly units: readonly Unit[];
  readonly gap: Gap;
  readonly cell: number;
  readonly inRows: boolean;
}

interface Unit {
  readonly alternatives: readonly (readonly number[])[];
  /** The codes that alone are an alternative. */
  readonly single: readonly number[];
  /** The first codes of the others. */
  readonly longer: readonly number[];
  /** All first codes. */
  readonly firsts: readonly number[];
}

/** Equal units share one object: a long secret has many of them. */
export function createCompiler(): (form: SecretForm) => Pattern {
  const byKey = new Map<string, Unit>();
  const compile = (alternatives: FormUnit): Unit => {
    const key = alternatives.join("|");
    const unit = byKey.get(key) ?? {
      alternatives,
      single: alternatives.flatMap((codes) => (codes.length === 1 ? codes : [])),
      longer: alternatives.flatMap((codes) => (codes.length === 1 ? [] : codes.slice(0, 1))),
      firsts: alternatives.flatMap((codes) => codes.slice(0, 1)),
    };
    byKey.set(key, unit);
    return unit;
  };
  return ({ heads, units, gap, cell = 1, inRows = false }) => {
    let compiled: readonly Unit[] | undefined;
    return {
      heads: heads.map(compile),
      get units() {
        return (compiled ??= units().map(compile));
      },
      gap,
      cell,
      inRows,
    };
  };
}

/**
 * All ways to read the text are followed at once, so no spelling hides another one. Time is bounded by the form's length.
 *
 * @returns where the longest spelling ends of the form that begins at `at`; `NO`, or `OPEN` unless the text `isLast`
 */
export function matchForm(pattern: Pattern, spelled: SpelledText, at: number, isLast: boolean): number {
  const { units, gap, cell, inRows } = pattern;
  const { text } = spelled;
  const isDump = gap === "separators" || gap === "columns";
  spelled.reachedEnd = false;
  let ends: readonly number[] = [at];
  for (let index = 0; index < units.length; index += 1) {
    const unit = units[index] as Unit;
    const [end = NO] = ends;
    const code = text.charCodeAt(end);
    if (
      ends.length === 1 &&
      ORDINARY[gap][code] === 1 &&
      !unit.longer.includes(code) &&
      !(isDump && isAfterLineEnd(text, end))
    ) {
      if (!unit.single.includes(code)) return spelled.reachedEnd && !isLast ? OPEN : NO;
      ends = [end + 1];
      continue;
    }
    if (ends.length === 1 && !isAfterLineEnd(text, end) && !mayGoOn(unit, gap, spelled.read(end))) {
      ends = NO_PLACES;
      break;
    }
    const from = index === 0 ? ends : withGaps(gap, spelled, ends, isDump && index % cell === 0);
    const next: number[] = [];
    for (const codes of unit.alternatives)
      for (const start of from) addEnds(next, { gap, spelled, codes }, start, 0);
    ends = next;
    if (ends.length === 0) break;
  }
  const last = ends.length === 0 ? NO : Math.max(...ends);
  const isRow = last !== NO && isDump && (inRows || hasRows(text.slice(at, last)));
  const end = isRow ? endOfRow(spelled, last) : last;
  return spelled.reachedEnd && !isLast ? OPEN : end;
}

const NO_PLACES: readonly number[] = [];

/** Rules out nearly every place before anything is made for it. */
function mayGoOn({ firsts }: Unit, gap: Gap, readings: readonly Reading[]): boolean {
  for (const { value } of readings) if (firsts.includes(value) || isGap(gap, value, true)) return true;
  return false;
}

interface Alternative {
  readonly gap: Gap;
  readonly spelled: SpelledText;
  readonly codes: readonly number[];
}

/** Adds where the codes from the one at `index` on may end. */
function addEnds(ends: number[], alternative: Alternative, at: number, index: number): void {
  const { gap, spelled, codes } = alternative;
  for (const { value, end } of spelled.read(at)) {
    if (value !== codes[index]) continue;
    if (index < codes.length - 1) {
      // A dump's cell is written without a gap.
      const starts = gap === "columns" ? [end] : withGaps(gap, spelled, [end]);
      for (const start of starts) addEnds(ends, alternative, start, index + 1);
    }
    // Few places: a list is faster than a set.
    else if (!ends.includes(end)) ends.push(end);
  }
}

const isAfterLineEnd = (text: string, at: number): boolean => text.charCodeAt(at - 1) === LINE_END;

/** The places themselves, and all that are reached from them through a gap. @param mayEndRow whether a dump's row may end here */
function withGaps(
  gap: Gap,
  spelled: SpelledText,
  ends: readonly number[],
  mayEndRow = false,
): readonly number[] {
  const { text } = spelled;
  const isOver = (at: number) =>
    ORDINARY[gap][text.charCodeAt(at)] === 1 && !(mayEndRow && isAfterLineEnd(text, at));
  if (ends.every(isOver)) return ends;
  const all = [...ends];
  let last = ends.map((at) => ({ at, isAfterLine: false }));
  for (let length = 0; length < MAX_GAP[gap] && last.length > 0; length += 1) {
    const next: typeof last = [];
    for (const { at, isAfterLine } of last) {
      const row = mayEndRow ? nextRow(spelled, at) : undefined;
      if (row !== undefined && !all.includes(row)) {
        all.push(row);
        next.push({ at: row, isAfterLine: false });
      }
      if (ORDINARY[gap][spelled.text.charCodeAt(at)] === 1) continue;
      for (const { value, end } of spelled.read(at)) {
        if (!isGap(gap, value, isAfterLine) || all.includes(end)) continue;
        all.push(end);
        next.push({ at: end, isAfterLine: value === LINE_END || (isAfterLine && isBlank(value)) });
      }
    }
    last = next;
  }
  return all;
}

/** The lines of wrapped text may be indented. */
export function isGap(gap: Gap, code: number, isAfterLine: boolean): boolean {
  const { ascii, others } = GAP_CODES[gap];
  return (code < 128 ? ascii[code] === 1 : others.includes(code)) || (isAfterLine && isBlank(code));
}

export interface TokenMatch {
  /** Where it ends; `NO` or `OPEN`. One that reaches the text's end may continue: see `goesOn`. */
  readonly end: number;
  /** Where the value begins: the text before it stays readable. */
  readonly from: number;
}

/** Whether a token begins at `at`. */
export function matchToken(rule: TokenRule, text: string, at: number, isLast: boolean): TokenMatch {
  let end = at;
  let from = at;
  for (const [index, part] of rule.parts.entries()) {
    if (index === rule.shown) from = end;
    if (typeof part === "string") end = matchLiteral({ part, caseless: rule.caseless }, text, end, isLast);
    else {
      // The last run is masked as soon as it is long enough, however long it becomes.
      const enough = index === rule.parts.length - 1 ? part.min : part.max;
      end = matchRun(part, text, end, isLast ? 0 : enough);
    }
    if (end < 0) break;
  }
  return { end, from };
}

interface Literal {
  readonly part: string;
  readonly caseless: boolean;
}

function matchLiteral({ part, caseless }: Literal, text: string, at: number, isLast: boolean): number {
  for (let index = 0; index < part.length; index += 1) {
    if (at + index >= text.length) return isLast ? NO : OPEN;
    const code = text.charCodeAt(at + index);
    const expected = part.charCodeAt(index);
    if (caseless ? lower(code) !== lower(expected) : code !== expected) return NO;
  }
  return at + part.length;
}

/** @param enough length from which a run that reaches the text's end is a match */
function matchRun(run: CharRun, text: string, at: number, enough: number): number {
  const length = runLength(run, text, at);
  if (at + length === text.length && length < enough) return OPEN;
  return length < run.min ? NO : at + length;
}

/** How many characters of `text` after the first continue a token that reached the first. */
export function goesOn(run: CharRun, text: string): number {
  return runLength(run, text, 1);
}

function runLength({ chars, max, afterLine }: CharRun, text: string, at: number): number {
  const last = Math.min(text.length, at + max);
  let end = at;
  while (end < last) {
    const code = text.charCodeAt(end);
    if (chars[code] !== 1 && !(code === afterLine && text.charCodeAt(end - 1) === LINE_END)) break;
    end += 1;
  }
  return end - at;
}

/** The code of an ASCII letter in lower case. */
function lower(code: number): number {
  return code >= 0x41 && code <= 0x5a ? code | 0x20 : code;
}
