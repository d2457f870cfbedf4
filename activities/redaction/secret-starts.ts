/** Finds where in a text a secret may begin, by pairs of characters: one look-up rules out nearly every place. */
import type { SecretForm } from "./secret-forms.ts";
import type { Gap } from "./secret-forms.ts";
import { createCompiler, GAP_STARTS, isGap, type Pattern } from "./secret-match.ts";
import { isLead, LEAD_CHARS, spellingStarts, type SpelledText } from "./spelled-text.ts";
import { TOKEN_RULES, type TokenRule } from "./token-rules.ts";

export interface SecretStarts {
  /** More forms to look for, from now on. */
  add(forms: readonly SecretForm[]): void;
  /** The first place at or after `from` where a secret may begin; the text's length if there is none. */
  next(text: string, from: number): number;
  patternsAt(spelled: SpelledText, at: number): readonly Pattern[];
  rulesAt(text: string, at: number): readonly TokenRule[];
}

interface Candidates {
  readonly patterns: Pattern[];
  readonly rules: TokenRule[];
}

const NONE: Candidates = { patterns: [], rules: [] };

export function createStarts(rules = TOKEN_RULES): SecretStarts {
  const lists: Candidates[] = [NONE];
  const pairs = new Uint16Array(256 * 256);
  const firsts = new Uint16Array(256);
  const listOf = (table: Uint16Array, index: number): Candidates => {
    if (table[index] === 0) table[index] = lists.push({ patterns: [], rules: [] }) - 1;
    return lists[table[index] ?? 0] ?? NONE;
  };
  const add = (starts: readonly (readonly [string, string])[], addTo: (list: Candidates) => void): void => {
    for (const index of new Set(starts.map(([first, second]) => pairIndex(first, second))))
      addTo(listOf(pairs, index));
    for (const firstIndex of new Set(starts.map(([first]) => bucket(first.charCodeAt(0)))))
      addTo(listOf(firsts, firstIndex));
  };
  const compile = createCompiler();
  const spelledStarts = new Map<number, Pattern[]>();
  const spelledNext = new SpelledNext();
  for (const rule of rules) add(startsOfRule(rule), (list) => list.rules.push(rule));

  const candidates = (text: string, at: number): Candidates => {
    const first = bucket(text.charCodeAt(at));
    const index = at + 1 < text.length ? pairs[first * 256 + bucket(text.charCodeAt(at + 1))] : firsts[first];
    return lists[index ?? 0] ?? NONE;
  };
  return {
    add(forms) {
      for (const form of forms) {
        const pattern = compile(form);
        add(startsOf(form), (list) => list.patterns.push(pattern));
        spelledNext.add(pattern);
        for (const code of new Set(form.heads[0]?.map(([first]) => first ?? 0)))
          addPattern(spelledStarts, code, pattern);
      }
      // Which character a spelling stands for is read only where one may begin that a form begins with.
      if (forms.length > 0) add(spellingStarts(new Set(spelledStarts.keys())), () => {});
    },
    next(text, from) {
      if (from >= text.length) return text.length;
      let first = bucket(text.charCodeAt(from));
      for (let at = from + 1; at < text.length; at += 1) {
        const second = bucket(text.charCodeAt(at));
        if (pairs[first * 256 + second] !== 0) return at - 1;
        first = second;
      }
      return firsts[first] === 0 ? text.length : text.length - 1;
    },
    patternsAt: (spelled, at) => {
      const { text } = spelled;
      const first = text.charCodeAt(at);
      if (!isLead(first))
        return isLead(text.charCodeAt(at + 1))
          ? spelledNext.after(spelled, at)
          : candidates(text, at).patterns;
      let patterns = NONE.patterns as readonly Pattern[];
      for (const { value } of spelled.read(at)) patterns = joined(patterns, spelledStarts.get(value));
      return patterns;
    },
    rulesAt: (text, at) => candidates(text, at).rules,
  };
}

const GAP_KINDS: readonly Gap[] = ["quotes", "wrap", "separators", "columns"];

/** Which forms go on where a spelling follows their first character: in some texts one follows every word. */
class SpelledNext {
  readonly #byNext = new Map<number, Pattern[]>();
  readonly #byGap: Readonly<Record<Gap, Map<number, Pattern[]>>> = {
    quotes: new Map(),
    wrap: new Map(),
    separators: new Map(),
    columns: new Map(),
  };
  /** Whether there is one, by the first code and the next: both below 128. */
  readonly #isAny = new Uint8Array(128 * 128);

  add(pattern: Pattern): void {
    const [head, next] = pattern.heads;
    for (const [first = 0, second] of head?.alternatives ?? []) {
      // A plus may stand for a blank.
      const firsts = first === BLANK ? [BLANK, PLUS] : [first];
      for (const code of firsts) {
        if (!this.#byGap[pattern.gap].has(code))
          for (let after = 0; after < 128; after += 1)
            if (isGap(pattern.gap, after, true)) this.#mark(code, after);
        addPattern(this.#byGap[pattern.gap], code, pattern);
        for (const after of second === undefined ? (next?.firsts ?? []) : [second]) {
          addPattern(this.#byNext, code * CODES + after, pattern);
          this.#mark(code, after);
        }
      }
    }
  }

  #mark(first: number, next: number): void {
    if (first < 128 && next < 128) this.#isAny[first * 128 + next] = 1;
  }

  after(spelled: SpelledText, at: number): readonly Pattern[] {
    const first = spelled.text.charCodeAt(at);
    let patterns: readonly Pattern[] = NONE.patterns;
    for (const { value, end } of spelled.read(at + 1)) {
      if (first < 128 && value < 128 && this.#isAny[first * 128 + value] === 0) continue;
      patterns = joined(patterns, this.#byNext.get(first * CODES + value));
      for (const gap of GAP_KINDS)
        if (isGap(gap, value, true) && !(gap === "wrap" && isNoWrap(spelled.text, value, end)))
          patterns = joined(patterns, this.#byGap[gap].get(first));
    }
    return patterns;
  }
}

/** What wraps a line has a line end: `=` or backslashes alone, as between a name and its value, are none. */
function isNoWrap(text: string, code: number, end: number): boolean {
  if (code !== EQUALS && code !== BACKSLASH) return false;
  let at = end;
  while (text.charCodeAt(at) === BACKSLASH || text.charCodeAt(at) === EQUALS) at += 1;
  return at < text.length && !LINE_END_STARTS.includes(text.charAt(at));
}

const EQUALS = 0x3d;
const BACKSLASH = 0x5c;
/** What a line end begins with, however it is spelled. */
const LINE_END_STARTS = "\n\r \tnrxuU01%&";
const BLANK = 0x20;
const PLUS = 0x2b;
/** More than there are code points. */
const CODES = 0x20_0000;

function addPattern(lists: Map<number, Pattern[]>, key: number, pattern: Pattern): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [pattern]);
  else if (!list.includes(pattern)) list.push(pattern);
}

function joined(patterns: readonly Pattern[], more: readonly Pattern[] | undefined): readonly Pattern[] {
  if (more === undefined || patterns === more) return patterns;
  return patterns.length === 0 ? more : [...new Set([...patterns, ...more])];
}

/** Characters beyond Latin-1 share a place; searched text contains no NUL. */
function bucket(code: number): number {
  return code > 0xff ? 0 : code;
}

function pairIndex(first: string, second: string): number {
  return bucket(first.charCodeAt(0)) * 256 + bucket(second.charCodeAt(0));
}

/** The two characters with which a form may begin, but for spelled ones. A blank may be a plus. */
function startsOf({ heads, gap }: SecretForm): (readonly [string, string])[] {
  const [head = [], next = []] = heads;
  const afterHead = [...GAP_STARTS[gap], ...next.flatMap(([first = 0]) => charsOf(first))];
  return head.flatMap(([first = 0, second]) =>
    charsOf(first).flatMap((char) =>
      (second === undefined ? afterHead : [...charsOf(second), ...LEAD_CHARS]).map(
        (after): [string, string] => [char, after],
      ),
    ),
  );
}

function charsOf(code: number): string[] {
  const char = String.fromCodePoint(code).charAt(0);
  return char === " " ? [" ", "+"] : [char];
}

function startsOfRule({ parts: [head], caseless }: TokenRule): (readonly [string, string])[] {
  if (typeof head !== "string") return [];
  const [firsts, seconds] = [0, 1].map((at) => (caseless ? cases(head, at) : [head.charAt(at)]));
  return (firsts ?? []).flatMap((first) =>
    (seconds ?? []).map((second): [string, string] => [first, second]),
  );
}

/** A character of a word as it may occur in text, in either case. */
function cases(word: string, at: number): readonly string[] {
  const char = word.charAt(at);
  return [char.toLowerCase(), char.toUpperCase()];
}
