/** Hides secrets in text, whole or in pieces. Pure. */
import { cleanText, type TextStream } from "./clean-text.ts";
import { type SecretPattern, secretPatterns, TOKEN_RULES, type TokenRule } from "./secret-patterns.ts";

/** What stands where a secret stood. No longer than the shortest secret, so that masking never lengthens a text. */
export const MASK = "[masked]";

export interface Masker {
  mask(text: string): string;
  /** The same for text in pieces; a secret may be split over any number of them. */
  stream(): TextStream;
}

/** A token longer than this is masked before its end is seen; what follows of it is dropped. */
const MAX_TOKEN_CHARS = 4_096;
const NEWLINE = String.raw`(?:\r?\n)?`;
/** A token begins where no word goes on: `task-…` holds no `sk-` token. */
const BOUNDARY = "(?<![A-Za-z0-9])";

/**
 * Masks each secret of at least 8 characters: its exact value, and its JSON, URL, hex and base64 forms; and what
 * looks like a well-known vendor's token.
 */
export function createMasker(secrets: readonly string[]): Masker {
  const patterns = secretPatterns(secrets, cleanText);
  const scan = new RegExp(
    [...patterns.map(patternSource), ...TOKEN_RULES.map((rule) => BOUNDARY + tokenSource(rule))].join("|"),
    "g",
  );
  const byFirst = Map.groupBy(patterns, (pattern) => pattern.chars.charCodeAt(0));
  const lookBack = Math.max(MAX_TOKEN_CHARS, ...patterns.map(({ chars }) => chars.length * 3));

  /** The first place from which the text's end may be an unfinished secret; the text's length where there is none. */
  function pendingFrom(text: string, from: number): number {
    for (let at = Math.max(from, text.length - lookBack); at < text.length; at += 1) {
      if (byFirst.get(text.charCodeAt(at))?.some((pattern) => mayContinue(text, at, pattern)) === true)
        return at;
      if (mayBeToken(text, at)) return at;
    }
    return text.length;
  }

  function stream(): TextStream {
    // The last character passed on, because a token's boundary looks back at it.
    let context = "";
    let held = "";
    let swallow: RegExp | undefined;

    function advance(text: string, ending: boolean): string {
      let from = context.length;
      let pending = ending ? text.length : pendingFrom(text, from);
      let passed = "";
      scan.lastIndex = from;
      for (let match = scan.exec(text); match !== null && match.index < pending; match = scan.exec(text)) {
        passed += text.slice(from, match.index) + MASK;
        from = match.index + match[0].length;
        if (from > pending) pending = ending ? text.length : pendingFrom(text, from);
        if (from === text.length && match[0].length > lookBack) swallow = followers(match[0]);
      }
      scan.lastIndex = 0;
      passed += text.slice(from, pending);
      context = text.slice(Math.max(0, pending - 1), pending);
      held = text.slice(pending);
      if (held.length > MAX_TOKEN_CHARS) {
        swallow = followers(held);
        if (swallow !== undefined) {
          passed += MASK;
          context = held.slice(-1);
          held = "";
        }
      }
      return passed;
    }

    return {
      push: (piece) => {
        let rest = piece;
        if (swallow !== undefined) {
          rest = piece.replace(swallow, "");
          if (rest.length < piece.length) context = piece.charAt(piece.length - rest.length - 1);
          if (rest === "") return "";
          swallow = undefined;
        }
        return advance(context + held + rest, false);
      },
      end: () => {
        const last = advance(context + held, true);
        context = "";
        swallow = undefined;
        return last;
      },
    };
  }

  return { mask: (text) => text.replace(scan, MASK), stream };
}

/** Whether the text from `at` to its end is a token, or a beginning of one. */
function mayBeToken(text: string, at: number): boolean {
  if (!/[sgAxnhr]/.test(text.charAt(at)) || (at > 0 && /[A-Za-z0-9]/.test(text.charAt(at - 1)))) return false;
  const rest = text.slice(at);
  return TOKEN_TAILS.some(({ prefix, tail }) =>
    rest.length <= prefix.length ? prefix.startsWith(rest) : rest.startsWith(prefix) && tail.test(rest),
  );
}

const TOKEN_TAILS = TOKEN_RULES.map(({ prefix, chars }) => ({
  prefix,
  tail: new RegExp(`^${escapeRegExp(prefix)}[${chars}]*$`),
}));

/** What may follow inside the token that the text is. */
function followers(text: string): RegExp | undefined {
  const rule = TOKEN_RULES.find((one) => new RegExp(`^${tokenSource(one)}$`).test(text));
  return rule === undefined ? undefined : new RegExp(`^[${rule.chars}]+`);
}

function patternSource({ chars, wrapped }: SecretPattern): string {
  if (!wrapped) return escapeRegExp(chars);
  return Array.from(chars, escapeRegExp).join(NEWLINE);
}

function tokenSource({ prefix, chars, min }: TokenRule): string {
  return `${escapeRegExp(prefix)}[${chars}]{${min},}`;
}

/** Whether the text from `at` to its end is a beginning of the pattern. */
function mayContinue(text: string, at: number, { chars, wrapped }: SecretPattern): boolean {
  let index = at;
  for (let next = 0; next < chars.length; next += 1) {
    if (wrapped && next > 0) {
      if (text[index] === "\r" && (index + 1 === text.length || text[index + 1] === "\n")) index += 1;
      if (text[index] === "\n") index += 1;
    }
    if (index >= text.length) return true;
    if (text.charCodeAt(index) !== chars.charCodeAt(next)) return false;
    index += 1;
  }
  return false;
}

function escapeRegExp(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");
}
