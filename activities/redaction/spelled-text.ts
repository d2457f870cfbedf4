/**
 * What a place in a text may stand for: the character itself, and what a URL, HTML, JSON, a programming language, a shell or
 * a mail would decode there, also one within the other. Pure.
 */
import { NAMED_CHARACTERS } from "./named-characters.ts";

/** A character's or byte's code that can be read, and where its spelling ends (exclusive). */
export interface Reading {
  readonly value: number;
  readonly end: number;
}

const AMPERSAND = 0x26;
const BACKSLASH = 0x5c;
const EQUALS = 0x3d;
const PERCENT = 0x25;
const PLUS = 0x2b;
const BLANK = 0x20;

/** How many encodings may lie inside each other. */
const MAX_DEPTH = 3;
/** How often text may be escaped with backslashes: each time doubles them. */
const MAX_BACKSLASHES = 16;
const MAX_READINGS = 24;
const MAX_KNOWN = 1_000;
/** The longest names of HTML characters that encoders write. */
const MAX_NAME = 18;

/** The characters with which a spelling of another character begins. */
const LEADS = [PERCENT, AMPERSAND, BACKSLASH, EQUALS];
export const LEAD_CHARS: readonly string[] = LEADS.map((code) => String.fromCharCode(code));

const CONTROLS: Readonly<Record<string, number>> = {
  a: 7,
  b: 8,
  t: 9,
  n: 10,
  v: 11,
  f: 12,
  r: 13,
  e: 27,
  E: 27,
};
const NO_READINGS: readonly Reading[] = [];

const isHex = (code: number): boolean =>
  isDigit(code) || (code >= 0x41 && code <= 0x46) || (code >= 0x61 && code <= 0x66);
const isDigit = (code: number): boolean => code >= 0x30 && code <= 0x39;
const isOctal = (code: number): boolean => code >= 0x30 && code <= 0x37;
const isAlphanumeric = (code: number): boolean =>
  isDigit(code) || (code >= 0x41 && code <= 0x5a) || (code >= 0x61 && code <= 0x7a);

const DIGITS = { 8: isOctal, 10: isDigit, 16: isHex } as const;

export const isLead = (code: number): boolean =>
  code === PERCENT || code === AMPERSAND || code === BACKSLASH || code === EQUALS;

export class SpelledText {
  readonly text: string;
  /** Whether a reading needed the text that follows the last character, so that more text could change it. */
  reachedEnd = false;

  /** Readings at places that were looked at before: many forms are compared at one place. */
  readonly #known = new Map<number, { readings: readonly Reading[]; reachedEnd: boolean }>();

  constructor(text: string) {
    this.text = text;
  }

  /** Everything that may be read at a place. The number is bounded, and so is the length of each. */
  read(at: number, depth = MAX_DEPTH): readonly Reading[] {
    if (at >= this.text.length) {
      this.reachedEnd = true;
      return NO_READINGS;
    }
    const code = this.text.charCodeAt(at);
    const plain: Reading = { value: code, end: at + 1 };
    if (code === PLUS) return [plain, { value: BLANK, end: at + 1 }];
    if (depth === 0 || !isLead(code)) return [plain];
    if (depth < MAX_DEPTH) return this.#readSpelling(at, depth, plain);
    let known = this.#known.get(at);
    if (known === undefined) {
      const before = this.reachedEnd;
      this.reachedEnd = false;
      known = { readings: this.#readSpelling(at, depth, plain), reachedEnd: this.reachedEnd };
      this.reachedEnd = before;
      if (this.#known.size > MAX_KNOWN) this.#known.clear();
      this.#known.set(at, known);
    }
    this.reachedEnd ||= known.reachedEnd;
    return known.readings;
  }

  #readSpelling(at: number, depth: number, plain: Reading): readonly Reading[] {
    const code = plain.value;
    const found = code === BACKSLASH ? this.#backslashes(at) : [plain];
    // What was read may be the beginning of a spelling itself: `%25` before `2F`. Of several backslashes, the last is.
    for (let index = found.length - 1; index < found.length && found.length < MAX_READINGS; index += 1) {
      const reading = found[index];
      if (reading?.value === PLUS) found.push({ value: BLANK, end: reading.end });
      if (reading !== undefined && isLead(reading.value)) this.#decode(reading, depth - 1, found);
    }
    return found;
  }

  #backslashes(at: number): Reading[] {
    const found: Reading[] = [];
    let end = at;
    while (end - at < MAX_BACKSLASHES && this.text.charCodeAt(end) === BACKSLASH) {
      end += 1;
      found.push({ value: BACKSLASH, end });
    }
    if (end === this.text.length) this.reachedEnd = true;
    return found;
  }

  #decode({ value, end }: Reading, depth: number, found: Reading[]): void {
    if (value === PERCENT) {
      this.#addNumber(found, end, { depth, min: 2, max: 2, base: 16 });
      const wide = this.#expect(end, depth, "u");
      if (wide !== undefined) this.#addNumber(found, wide, { depth, min: 4, max: 4, base: 16 });
    } else if (value === EQUALS) this.#addNumber(found, end, { depth, min: 2, max: 2, base: 16 });
    else if (value === AMPERSAND) this.#decodeEntity(end, depth, found);
    else this.#decodeEscape(end, depth, found);
  }

  #decodeEntity(at: number, depth: number, found: Reading[]): void {
    const close = (reading: Reading | undefined): void => {
      if (reading !== undefined)
        found.push({ ...reading, end: this.#expect(reading.end, depth, ";") ?? reading.end });
    };
    const digits = this.#expect(at, depth, "#");
    if (digits === undefined) return close(this.#name(at, depth));
    const hex = this.#expect(digits, depth, "x", "X");
    if (hex !== undefined) close(this.#number(hex, { depth, min: 1, max: 8, base: 16 }));
    else close(this.#number(digits, { depth, min: 1, max: 10, base: 10 }));
  }

  /** What a backslash makes of the characters after it. */
  #decodeEscape(at: number, depth: number, found: Reading[]): void {
    const next = this.#next(at, depth, isAlphanumeric);
    if (next === undefined) {
      found.push(...this.read(at, depth).filter(({ value }) => value !== BACKSLASH));
      return;
    }
    const letter = String.fromCharCode(next.value);
    const control = CONTROLS[letter];
    if (control !== undefined) found.push({ value: control, end: next.end });
    if (isOctal(next.value)) this.#addNumber(found, at, { depth, min: 1, max: 3, base: 8 });
    else if (letter === "x") this.#addNumber(found, next.end, { depth, min: 1, max: 2, base: 16 });
    else if (letter === "U") this.#addNumber(found, next.end, { depth, min: 8, max: 8, base: 16 });
    else if (letter === "u") {
      const open = this.#expect(next.end, depth, "{");
      if (open === undefined) return this.#addNumber(found, next.end, { depth, min: 4, max: 4, base: 16 });
      const inner = this.#number(open, { depth, min: 1, max: 8, base: 16 });
      const end = inner && this.#expect(inner.end, depth, "}");
      if (inner !== undefined && end !== undefined) found.push({ value: inner.value, end });
    }
  }

  #addNumber(found: Reading[], at: number, rule: NumberRule): void {
    const reading = this.#number(at, rule);
    if (reading !== undefined) found.push(reading);
  }

  #number(at: number, { depth, min, max, base }: NumberRule): Reading | undefined {
    const accepts = DIGITS[base];
    let digits = "";
    let end = at;
    while (digits.length < max) {
      const next = this.#next(end, depth, accepts);
      if (next === undefined) break;
      digits += String.fromCharCode(next.value);
      ({ end } = next);
    }
    return digits.length < min ? undefined : { value: Number.parseInt(digits, base), end };
  }

  #name(at: number, depth: number): Reading | undefined {
    let name = "";
    let end = at;
    let found: Reading | undefined;
    while (name.length < MAX_NAME) {
      const next = this.#next(end, depth, isAlphanumeric);
      if (next === undefined) break;
      name += String.fromCharCode(next.value);
      ({ end } = next);
      const value = NAMED_CHARACTERS.get(name);
      if (value !== undefined) found = { value, end };
    }
    return found;
  }

  /** Where the text goes on after one of these characters, however it is spelled. */
  #expect(at: number, depth: number, ...chars: readonly string[]): number | undefined {
    return this.#next(at, depth, (code) => chars.includes(String.fromCharCode(code)))?.end;
  }

  #next(at: number, depth: number, accepts: (code: number) => boolean): Reading | undefined {
    const code = this.text.charCodeAt(at);
    // Nearly always the character stands for itself.
    if (at < this.text.length && accepts(code)) return { value: code, end: at + 1 };
    if (at < this.text.length && !isLead(code)) return undefined;
    return this.read(at, depth).find(({ value }) => accepts(value));
  }
}

interface NumberRule {
  readonly depth: number;
  readonly min: number;
  readonly max: number;
  readonly base: 8 | 10 | 16;
}
