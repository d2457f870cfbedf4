/**
 * Reads JSON as models write it, where it has one plain meaning: with raw line breaks in strings, trailing commas, comments,
 * single quotes, Python's words, names without quotes, or without its last brackets. Where a reader would have to guess (a quote
 * inside a string that is not escaped, an escape that JSON has not), it says what is wrong and where. Libraries that repair JSON
 * take a guess there, and complete what was cut.
 */

/** Where and why a text cannot be read. */
export class Misread extends Error {
  override readonly name = "Misread";
  /** Offset in the text. */
  readonly at: number;
  /** The text ends before its value does. */
  readonly isEnd: boolean;

  constructor(reason: string, at: number, isEnd = false) {
    super(reason);
    this.at = at;
    this.isEnd = isEnd;
  }
}

/** One of the values that a text consists of. */
export interface ReadValue {
  readonly value: unknown;
  readonly at: number;
}

/**
 * The values of a text, one after another.
 * @param closes whether brackets that are open at the end are closed; not for a text that may have been cut
 * @throws Misread
 */
export function readLenient(text: string, closes: boolean): ReadValue[] {
  return new Reader(text, closes).values();
}

/** Chosen: no tool has a schema of such a depth. */
const MAX_DEPTH = 100;
const CLOSING: Readonly<Record<string, string>> = { '"': '"', "'": "'", "“": "”" };
const UNTIL: Readonly<Record<string, RegExp>> = { '"': /[^"\\]+/y, "'": /[^'\\]+/y, "”": /[^”\\]+/y };
const ESCAPED: Readonly<Record<string, string>> = {
  '"': '"',
  "'": "'",
  "\\": "\\",
  "/": "/",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
};
const WORDS: ReadonlyMap<string, unknown> = new Map<string, unknown>([
  ...["true", "True", "TRUE"].map((word) => [word, true] as const),
  ...["false", "False", "FALSE"].map((word) => [word, false] as const),
  ...["null", "Null", "NULL", "None"].map((word) => [word, null] as const),
  ["undefined", undefined],
]);
const ESCAPE_QUOTES = 'A " inside a string is written \\".';

class Reader {
  readonly #text: string;
  readonly #closes: boolean;
  #at = 0;
  #depth = 0;
  /** The quote that has just closed a string: perhaps one that belongs to it. */
  #closedBy: string | undefined;

  constructor(text: string, closes: boolean) {
    this.#text = text;
    this.#closes = closes;
  }

  values(): ReadValue[] {
    const readValues: ReadValue[] = [];
    for (;;) {
      this.#skip();
      if (this.#isAtEnd) return readValues;
      // Brackets too many at the end mean nothing.
      if (readValues.length > 0 && /^[\s}\]]+$/.test(this.#text.slice(this.#at))) return readValues;
      const at = this.#at;
      readValues.push({ value: this.#value(), at });
    }
  }

  get #isAtEnd(): boolean {
    return this.#at >= this.#text.length;
  }

  get #next(): string {
    return this.#text.charAt(this.#at);
  }

  #value(): unknown {
    const closedBy = CLOSING[this.#next];
    if (closedBy !== undefined) return this.#string(closedBy);
    this.#closedBy = undefined;
    if (this.#next === "{") return this.#inside(() => this.#object());
    if (this.#next === "[") return this.#inside(() => this.#array());
    if (this.#isAtEnd) throw this.#ended("a value is missing");
    const number = this.#match(/[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?/y);
    if (number !== undefined) return this.#number(number);
    const at = this.#at;
    const word = this.#match(/[A-Za-z_$][\w$]*/y);
    if (word !== undefined && WORDS.has(word)) return WORDS.get(word);
    throw new Misread(`expected a value, and found ${this.#found(at)}. A text is written in quotes.`, at);
  }

  #inside<T>(body: () => T): T {
    this.#depth += 1;
    if (this.#depth > MAX_DEPTH) throw new Misread("it is nested too deeply", this.#at);
    this.#at += 1;
    const value = body();
    this.#depth -= 1;
    this.#closedBy = undefined;
    return value;
  }

  #object(): unknown {
    const fields = new Map<string, unknown>();
    for (;;) {
      this.#skip();
      if (this.#takes("}") || this.#closesHere()) return Object.fromEntries(fields);
      const at = this.#at;
      const name = this.#fieldName();
      this.#skip();
      if (!this.#takes(":")) throw this.#expected('a ":" after the name of a field');
      this.#skip();
      const value = this.#value();
      if (fields.has(name) && JSON.stringify(fields.get(name)) !== JSON.stringify(value))
        throw new Misread(`the field "${name}" is there twice, with different values`, at);
      if (value !== undefined) fields.set(name, value);
      this.#skip();
      if (this.#takes(",")) continue;
      if (this.#takes("}") || this.#closesHere()) return Object.fromEntries(fields);
      throw this.#expected('a "," or "}" after a value', ESCAPE_QUOTES);
    }
  }

  #array(): unknown {
    const items: unknown[] = [];
    for (;;) {
      this.#skip();
      if (this.#takes("]") || this.#closesHere()) return items;
      const item = this.#value();
      items.push(item === undefined ? null : item);
      this.#skip();
      if (this.#takes(",")) continue;
      if (this.#takes("]") || this.#closesHere()) return items;
      throw this.#expected('a "," or "]" after a value', ESCAPE_QUOTES);
    }
  }

  #fieldName(): string {
    const closedBy = CLOSING[this.#next];
    if (closedBy !== undefined) return this.#string(closedBy);
    const name = this.#match(/[A-Za-z_$][\w$-]*/y);
    if (name === undefined) throw this.#expected("the name of a field");
    return name;
  }

  #string(closedBy: string): string {
    const begin = this.#at;
    this.#at += 1;
    const plain = UNTIL[closedBy] ?? /[^"\\]+/y;
    const parts: string[] = [];
    for (;;) {
      parts.push(this.#match(plain) ?? "");
      if (this.#isAtEnd) throw new Misread("the text ends inside a string", begin, true);
      if (this.#takes(closedBy)) break;
      parts.push(this.#escape());
    }
    this.#closedBy = closedBy;
    return parts.join("");
  }

  #escape(): string {
    const at = this.#at;
    const char = this.#text.charAt(at + 1);
    const code = /^\\u([0-9a-fA-F]{4})/.exec(this.#text.slice(at, at + 6))?.[1];
    if (code !== undefined) {
      this.#at += 6;
      return String.fromCharCode(Number.parseInt(code, 16));
    }
    const character = ESCAPED[char];
    if (char === "") throw new Misread("the text ends inside a string", at, true);
    if (character === undefined)
      throw new Misread(`"\\${char.trim()}" is no escape of JSON. A backslash is written \\\\.`, at);
    this.#at += 2;
    return character;
  }

  #number(written: string): number {
    // Some languages read that as octal.
    if (/^[+-]?0\d/.test(written)) throw new Misread(`the number ${written} begins with 0`, this.#at);
    return Number(written);
  }

  /** Blanks and comments. */
  #skip(): void {
    for (;;) {
      this.#match(/[\s\uFEFF]+/y);
      const at = this.#at;
      const comment = this.#match(/(?:\/\/|#)[^\n]*\n|\/\*[\s\S]*?\*\//y);
      if (comment === undefined) return;
      // Otherwise it could be the rest of a string with a quote inside.
      const mayBeText = this.#closedBy !== undefined && comment.includes(this.#closedBy);
      if (mayBeText || !/[\s,{[:]/.test(this.#text.charAt(at - 1) || " "))
        throw new Misread(`expected a "," or a bracket after a value. ${ESCAPE_QUOTES}`, at);
    }
  }

  #closesHere(): boolean {
    if (!this.#isAtEnd) return false;
    if (!this.#closes) throw this.#ended("a closing bracket is missing");
    return true;
  }

  #takes(char: string): boolean {
    if (this.#next !== char || this.#isAtEnd) return false;
    this.#at += 1;
    if (char === ",") this.#closedBy = undefined;
    return true;
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const match = pattern.exec(this.#text)?.[0];
    this.#at += match?.length ?? 0;
    return match;
  }

  #found(at: number): string {
    return JSON.stringify(/^[\w$]{1,20}|^./su.exec(this.#text.slice(at, at + 20))?.[0] ?? "");
  }

  #expected(what: string, hint = ""): Misread {
    if (this.#isAtEnd) return this.#ended(`it lacks ${what}`);
    const help = this.#closedBy === undefined ? "" : ` ${hint}`;
    return new Misread(`expected ${what}, and found ${this.#found(this.#at)}.${help}`.trimEnd(), this.#at);
  }

  #ended(what: string): Misread {
    return new Misread(`the text ends too early: ${what}`, this.#text.length, true);
  }
}
