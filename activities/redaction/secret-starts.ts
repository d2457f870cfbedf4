/** Finds where in a text a secret may begin, by pairs of characters: one look-up rules out nearly every place. Pure. */
import type { SecretForm } from "./secret-forms.ts";
import { createCompiler, GAP_STARTS, type Pattern } from "./secret-match.ts";
import { isLead, LEAD_CHARS, type SpelledText } from "./spelled-text.ts";
import { TOKEN_RULES, type TokenRule } from "./token-rules.ts";

export interface SecretStarts {
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

export function createStarts(forms: readonly SecretForm[], rules = TOKEN_RULES): SecretStarts {
  const lists: Candidates[] = [NONE];
  const pairs = new Uint16Array(256 * 256);
  const firsts = new Uint16Array(256);
  const listOf = (table: Uint16Array, place: number): Candidates => {
    if (table[place] === 0) table[place] = lists.push({ patterns: [], rules: [] }) - 1;
    return lists[table[place] ?? 0] ?? NONE;
  };
  const add = (starts: readonly (readonly [string, string])[], put: (list: Candidates) => void): void => {
    for (const place of new Set(starts.map(([first, second]) => placeOf(first, second))))
      put(listOf(pairs, place));
    for (const place of new Set(starts.map(([first]) => bucket(first.charCodeAt(0)))))
      put(listOf(firsts, place));
  };
  const compile = createCompiler();
  const spelledStarts = new Map<number, readonly Pattern[]>();
  for (const form of forms) {
    const pattern = compile(form);
    add(startsOf(form), (list) => list.patterns.push(pattern));
    for (const code of new Set(form.units[0]?.map(([first]) => first ?? 0)))
      spelledStarts.set(code, [...(spelledStarts.get(code) ?? []), pattern]);
  }
  // Which character a spelling stands for is read only where one may begin.
  if (forms.length > 0) add(spellingStarts(), () => {});
  for (const rule of rules) add(startsOfRule(rule), (list) => list.rules.push(rule));

  const candidates = (text: string, at: number): Candidates => {
    const first = bucket(text.charCodeAt(at));
    const index = at + 1 < text.length ? pairs[first * 256 + bucket(text.charCodeAt(at + 1))] : firsts[first];
    return lists[index ?? 0] ?? NONE;
  };
  return {
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
      if (!isLead(spelled.text.charCodeAt(at))) return candidates(spelled.text, at).patterns;
      const values = new Set(spelled.read(at).map(({ value }) => value));
      return [...new Set([...values].flatMap((value) => spelledStarts.get(value) ?? []))];
    },
    rulesAt: (text, at) => candidates(text, at).rules,
  };
}

/** Characters beyond Latin-1 share a place; searched text contains no NUL. */
function bucket(code: number): number {
  return code > 0xff ? 0 : code;
}

function placeOf(first: string, second: string): number {
  return bucket(first.charCodeAt(0)) * 256 + bucket(second.charCodeAt(0));
}

/** The two characters with which a form may begin, but for spelled ones. A blank may be a plus. */
function startsOf({ units, gap }: SecretForm): (readonly [string, string])[] {
  const [head = [], next = []] = units;
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

/** The two characters with which a spelling may begin; behind a backslash, that may be anything. */
function spellingStarts(): (readonly [string, string])[] {
  const all = Array.from({ length: 256 }, (_none, code) => String.fromCharCode(code));
  return LEAD_CHARS.flatMap((lead) =>
    all
      .filter((char) => lead === "\\" || /[0-9A-Fa-f#u&%=\\a-z]/i.test(char))
      .map((char): [string, string] => [lead, char]),
  );
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
