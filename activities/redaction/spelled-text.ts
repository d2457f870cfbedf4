/**
 * What a place in a text may stand for: the character itself, and what a URL, HTML, JSON, a programming language, a shell or
 * a mail would decode there, also one within the other.
 */

/** Names of ASCII characters, each in front of the character; several names may stand for one. */
const ASCII =
  'Tab \t NewLine \n excl ! quot " QUOT " num # dollar $ percnt % amp & AMP & apos \' lpar ( rpar ) ast * midast * plus + ' +
  "comma , period . sol / colon : semi ; lt < LT < equals = gt > GT > quest ? commat @ lsqb [ lbrack [ bsol \\ rsqb ] rbrack ] " +
  "Hat ^ lowbar _ UnderBar _ grave ` DiacriticalGrave ` lcub { lbrace { verbar | vert | VerticalLine | rcub } rbrace }";

/** The names of U+00A0 to U+00FF in order. */
const LATIN_1 =
  "nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3 acute micro para " +
  "middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring AElig Ccedil Egrave Eacute " +
  "Ecirc Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave Uacute Ucirc Uuml Yacute " +
  "THORN szlig agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml igrave iacute icirc iuml eth ntilde " +
  "ograve oacute ocirc otilde ouml divide oslash ugrave uacute ucirc uuml yacute thorn yuml";

/** From a name that HTML encoders write to the character's code. Source: the HTML standard's list, of ASCII and Latin-1. */
export const NAMED_CHARACTERS: ReadonlyMap<string, number> = new Map([
  ...[...ASCII.matchAll(/(\w+) (\S|\t|\n)/g)].map((match): [string, number] => [
    match[1] ?? "",
    match[2]?.charCodeAt(0) ?? 0,
  ]),
  ...LATIN_1.split(" ").map((name, index): [string, number] => [name, 0xa0 + index]),
]);

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
const HASH = 0x23;
const UPPER_U = 0x55;
const LOWER_U = 0x75;
const LOWER_X = 0x78;

/** How many encodings may lie inside each other. */
const MAX_DEPTH = 4;
/** How often text may be escaped with backslashes: each time doubles them. */
const MAX_BACKSLASHES = 32;
const MAX_READINGS = 40;
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

/** The value of a digit in base 16 or less. */
const digitOf = (code: number): number => (isDigit(code) ? code - 0x30 : (code | 0x20) - 0x57);

const DIGITS = { 8: isOctal, 10: isDigit, 16: isHex } as const;

export const isLead = (code: number): boolean =>
  code === PERCENT || code === AMPERSAND || code === BACKSLASH || code === EQUALS;

/** The two characters with which a spelling of one of these codes may begin. Characters beyond Latin-1 are given as NUL. */
export function spellingStarts(codes: ReadonlySet<number>): (readonly [string, string])[] {
  // What is spelled may be the beginning of a spelling itself.
  const needed = new Set([...codes, ...LEADS]);
  const digits = new Set([...needed].filter((code) => code < 256).map((code) => code >> 4));
  const names = [...NAMED_CHARACTERS].filter(([, code]) => needed.has(code)).map(([name]) => name.charAt(0));
  const isStart = (lead: number, code: number): boolean => {
    // The lead may stand for itself, and what follows it may be spelled.
    if (codes.has(lead) || isLead(code)) return true;
    const char = String.fromCharCode(code);
    if (lead === AMPERSAND) return code === HASH || names.includes(char);
    // The first of two hexadecimal digits.
    if (lead !== BACKSLASH) return code === LOWER_U || (isHex(code) && digits.has(digitOf(code)));
    return code === 0 || isOctal(code) || "xuU".includes(char) || needed.has(CONTROLS[char] ?? code);
  };
  const all = Array.from({ length: 256 }, (_none, code) => code);
  return LEADS.flatMap((lead) =>
    all
      .filter((code) => isStart(lead, code))
      .map((code): [string, string] => [String.fromCharCode(lead), String.fromCharCode(code)]),
  );
}

export class SpelledText {
  readonly text: string;
  /** Whether a reading needed the text that follows the last character, so that more text could change it. */
  reachedEnd = false;

  /** Readings at places that were looked at before: many forms are compared at one place. */
  readonly #known = new Map<number, { readings: readonly Reading[]; reachedEnd: boolean }>();

  /** The last run of backslashes that was looked at. */
  #runStart = 0;
  #runEnd = 0;

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
    const usual = this.#readUsual(plain);
    if (usual !== undefined) return usual;
    if (depth < MAX_DEPTH) return this.#readSpelling(at, depth, plain);
    let cached = this.#known.get(at);
    if (cached === undefined) {
      const before = this.reachedEnd;
      this.reachedEnd = false;
      cached = { readings: this.#readSpelling(at, depth, plain), reachedEnd: this.reachedEnd };
      this.reachedEnd = before;
      if (this.#known.size > MAX_KNOWN) this.#known.clear();
      this.#known.set(at, cached);
    }
    this.reachedEnd ||= cached.reachedEnd;
    return cached.readings;
  }

  /** The spellings of nearly every text, which need nothing of what follows: the same as `#readSpelling`. */
  #readUsual(plain: Reading): readonly Reading[] | undefined {
    const { value: lead, end } = plain;
    const [first, second] = [this.text.charCodeAt(end), this.text.charCodeAt(end + 1)];
    if (end >= this.text.length || isLead(first) || first === PLUS) return undefined;
    if (lead === BACKSLASH) {
      if (!isAlphanumeric(first)) return [plain, { value: first, end: end + 1 }];
      if (isOctal(first) || first === UPPER_U || first === LOWER_U || first === LOWER_X) return undefined;
      const control = CONTROLS[String.fromCharCode(first)];
      return control === undefined ? [plain] : [plain, { value: control, end: end + 1 }];
    }
    if (lead === AMPERSAND) return isAlphanumeric(first) || first === HASH ? undefined : [plain];
    if (!isHex(first)) return first === LOWER_U ? undefined : [plain];
    if (end + 1 >= this.text.length || isLead(second)) return undefined;
    if (!isHex(second)) return [plain];
    const value = digitOf(first) * 16 + digitOf(second);
    return isLead(value) || value === PLUS ? undefined : [plain, { value, end: end + 2 }];
  }

  #readSpelling(at: number, depth: number, plain: Reading): readonly Reading[] {
    const code = plain.value;
    const readings = code === BACKSLASH ? this.#backslashes(at) : [plain];
    // What was read may be the beginning of a spelling itself: `%25` before `2F`. Of several backslashes, the last is.
    for (
      let index = readings.length - 1;
      index < readings.length && readings.length < MAX_READINGS;
      index += 1
    ) {
      const reading = readings[index];
      if (reading?.value === PLUS) add(readings, { value: BLANK, end: reading.end });
      if (reading !== undefined && isLead(reading.value)) this.#decode(reading, depth - 1, readings);
    }
    return readings;
  }

  #backslashes(at: number): Reading[] {
    if (at >= this.#runEnd || at < this.#runStart) {
      [this.#runStart, this.#runEnd] = [at, at];
      while (this.text.charCodeAt(this.#runEnd) === BACKSLASH) this.#runEnd += 1;
    }
    const length = Math.min(this.#runEnd - at, MAX_BACKSLASHES);
    if (at + length === this.text.length) this.reachedEnd = true;
    // Of a longer run, only its beginning and its end are read as anything.
    if (this.#runEnd - at > MAX_BACKSLASHES) return [{ value: BACKSLASH, end: at + 1 }];
    return Array.from({ length }, (_none, index) => ({ value: BACKSLASH, end: at + index + 1 }));
  }

  #decode({ value, end }: Reading, depth: number, readings: Reading[]): void {
    if (value === PERCENT) {
      this.#addNumber(readings, end, { depth, min: 2, max: 2, base: 16 });
      const wide = this.#expect(end, depth, "u");
      if (wide !== undefined) this.#addNumber(readings, wide, { depth, min: 4, max: 4, base: 16 });
    } else if (value === EQUALS) this.#addNumber(readings, end, { depth, min: 2, max: 2, base: 16 });
    else if (value === AMPERSAND) this.#decodeEntity(end, depth, readings);
    else this.#decodeEscape(end, depth, readings);
  }

  #decodeEntity(at: number, depth: number, readings: Reading[]): void {
    const close = (reading: Reading | undefined): void => {
      if (reading !== undefined)
        add(readings, { ...reading, end: this.#expect(reading.end, depth, ";") ?? reading.end });
    };
    const digits = this.#expect(at, depth, "#");
    if (digits === undefined) return close(this.#name(at, depth));
    const hex = this.#expect(digits, depth, "x", "X");
    if (hex !== undefined) close(this.#number(hex, { depth, min: 1, max: 8, base: 16 }));
    else close(this.#number(digits, { depth, min: 1, max: 10, base: 10 }));
  }

  /** What a backslash makes of the characters after it. */
  #decodeEscape(at: number, depth: number, readings: Reading[]): void {
    const next = this.#next(at, depth, isAlphanumeric);
    if (next !== undefined) this.#decodeLetter(at, next, { depth, readings });
    // It may also protect the character that is written there, which may begin the spelling of a letter.
    if (isAlphanumeric(this.text.charCodeAt(at))) return;
    for (const reading of this.read(at, depth)) if (reading.value !== BACKSLASH) add(readings, reading);
  }

  #decodeLetter(
    at: number,
    next: Reading,
    { depth, readings }: { readonly depth: number; readonly readings: Reading[] },
  ): void {
    const letter = String.fromCharCode(next.value);
    const control = CONTROLS[letter];
    if (control !== undefined) add(readings, { value: control, end: next.end });
    if (isOctal(next.value)) this.#addNumber(readings, at, { depth, min: 1, max: 3, base: 8 });
    else if (letter === "x") this.#addNumber(readings, next.end, { depth, min: 1, max: 2, base: 16 });
    else if (letter === "U") this.#addNumber(readings, next.end, { depth, min: 8, max: 8, base: 16 });
    else if (letter === "u") {
      const open = this.#expect(next.end, depth, "{");
      if (open === undefined) return this.#addNumber(readings, next.end, { depth, min: 4, max: 4, base: 16 });
      const inner = this.#number(open, { depth, min: 1, max: 8, base: 16 });
      const end = inner && this.#expect(inner.end, depth, "}");
      if (inner !== undefined && end !== undefined) add(readings, { value: inner.value, end });
    }
  }

  #addNumber(readings: Reading[], at: number, rule: NumberRule): void {
    const reading = this.#number(at, rule);
    if (reading !== undefined) add(readings, reading);
  }

  #number(at: number, { depth, min, max, base }: NumberRule): Reading | undefined {
    const accepts = DIGITS[base];
    let value = 0;
    let digits = 0;
    let end = at;
    while (digits < max) {
      const next = this.#next(end, depth, accepts);
      if (next === undefined) break;
      value = value * base + digitOf(next.value);
      digits += 1;
      ({ end } = next);
    }
    return digits < min ? undefined : { value, end };
  }

  #name(at: number, depth: number): Reading | undefined {
    let name = "";
    let end = at;
    let reading: Reading | undefined;
    while (name.length < MAX_NAME) {
      const next = this.#next(end, depth, isAlphanumeric);
      if (next === undefined) break;
      name += String.fromCharCode(next.value);
      ({ end } = next);
      const value = NAMED_CHARACTERS.get(name);
      if (value !== undefined) reading = { value, end };
    }
    return reading;
  }

  /** Where the text goes on after one of these characters, however it is spelled. */
  #expect(at: number, depth: number, char: string, other = char): number | undefined {
    const code = this.text.charCodeAt(at);
    // Nearly always another character stands there, and none that is spelled.
    if (!isLead(code) && at < this.text.length)
      return code === char.charCodeAt(0) || code === other.charCodeAt(0) ? at + 1 : undefined;
    const isWanted = (value: number) => value === char.charCodeAt(0) || value === other.charCodeAt(0);
    return this.#next(at, depth, isWanted)?.end;
  }

  #next(at: number, depth: number, accepts: (code: number) => boolean): Reading | undefined {
    const code = this.text.charCodeAt(at);
    // Nearly always the character stands for itself.
    if (at < this.text.length && accepts(code)) return { value: code, end: at + 1 };
    if (at < this.text.length && !isLead(code)) return undefined;
    return this.read(at, depth).find(({ value }) => accepts(value));
  }
}

/** Once: what is found again in another way is not followed again. */
function add(readings: Reading[], reading: Reading): void {
  for (const { value, end } of readings) if (value === reading.value && end === reading.end) return;
  readings.push(reading);
}

interface NumberRule {
  readonly depth: number;
  readonly min: number;
  readonly max: number;
  readonly base: 8 | 10 | 16;
}

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
  const rowStart = endAt(ROW_START, text, start);
  if (rowStart === undefined && endAt(OPEN_START, text, start) !== undefined) spelled.reachedEnd = true;
  return rowStart;
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
