/** Finds where in a text a secret may begin, by pairs of characters: one look-up rules out nearly every place. Pure. */
import type { SecretForm } from "./secret-forms.ts";
import { createCompiler, GAP_STARTS, type Pattern } from "./secret-match.ts";
import { TOKEN_RULES, type TokenRule } from "./token-rules.ts";

export interface SecretStarts {
  /** The first place at or after `from` where a secret may begin; the text's length if there is none. */
  next(text: string, from: number): number;
  patternsAt(text: string, at: number): readonly Pattern[];
  rulesAt(text: string, at: number): readonly TokenRule[];
}

interface Candidates {
  readonly patterns: Pattern[];
  readonly rules: TokenRule[];
}

const NONE: Candidates = { patterns: [], rules: [] };

export function createStarts(forms: readonly SecretForm[]): SecretStarts {
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
  for (const form of forms) {
    const pattern = compile(form);
    add(startsOf(form), (list) => list.patterns.push(pattern));
  }
  for (const rule of TOKEN_RULES) add(startsOfRule(rule), (list) => list.rules.push(rule));

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
    patternsAt: (text, at) => candidates(text, at).patterns,
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

/** The two characters with which a form may begin. */
function startsOf({ units, gap }: SecretForm): (readonly [string, string])[] {
  const [head = [], next = []] = units;
  const afterHead = [...Array.from(GAP_STARTS[gap]), ...next.flatMap((spelling) => cases(spelling, 0))];
  return head.flatMap((spelling) =>
    cases(spelling, 0).flatMap((first) =>
      secondsOf(spelling, afterHead).map((second): [string, string] => [first, second]),
    ),
  );
}

function secondsOf(spelling: string, afterHead: readonly string[]): readonly string[] {
  const own = spelling.length > 1 ? cases(spelling, 1) : afterHead;
  return spelling.startsWith("\\") ? ["\\", ...own] : own;
}

function startsOfRule({ parts: [head], caseless }: TokenRule): (readonly [string, string])[] {
  if (typeof head !== "string") return [];
  const [firsts, seconds] = [0, 1].map((at) => (caseless ? cases(head, at) : [head.charAt(at)]));
  return (firsts ?? []).flatMap((first) =>
    (seconds ?? []).map((second): [string, string] => [first, second]),
  );
}

/** A character of a spelling as it may occur in text: of a longer spelling in either case. */
function cases(spelling: string, at: number): readonly string[] {
  const char = spelling.charAt(at);
  return spelling.length === 1 ? [char] : [char.toLowerCase(), char.toUpperCase()];
}
