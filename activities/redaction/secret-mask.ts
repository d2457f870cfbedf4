/** Hides secrets in text, whole or in pieces. Pure. */
import { cleanText, type TextStream } from "../contract/clean-text.ts";
import { secretForms } from "./secret-forms.ts";
import { createStarts } from "./secret-starts.ts";
import { goesOn, matchForm, matchToken, NO, OPEN } from "./secret-match.ts";
import type { Run } from "./token-rules.ts";

/** What stands where a secret stood. No longer than the shortest secret, so that masking never lengthens a text. */
export const MASK = "[masked]";

export interface Masker {
  mask(text: string): string;
  /** The same for text in pieces; a secret may be split over any number of them. */
  stream(): TextStream;
  /** What `mask` shows of the text between two places: a secret that reaches over one of them is masked there too. */
  maskWindow(text: string, from: number, to: number): string;
}

const NO_TAILS: readonly Run[] = [];

/** The result of a scan of a text. */
interface Scan {
  /** So many characters at the beginning belong to what was masked before. */
  readonly covered: number;
  /** Places that are masked, first and last (exclusive) of each in turn. */
  readonly spans: number[];
  /** From here on what follows the text decides. */
  readonly held: number;
  /** Tokens that end where the text does, and may continue. */
  readonly tails: readonly Run[];
}

/**
 * Masks each secret of at least 8 characters in the forms of `secretForms`, and what looks like a well-known vendor's
 * token. Time grows with the text's length alone.
 */
export function createMasker(secrets: readonly string[]): Masker {
  const starts = createStarts(secretForms(secrets, cleanText));

  /**
   * @param before the character in front of the text
   * @param covered so many characters at the beginning belong to a secret that was masked before
   * @param whole whether the text ends here
   */
  function scan(text: string, before: string, covered: number, whole: boolean): Scan {
    const spans: number[] = [];
    let masked = covered;
    let lead = covered;
    const result = (held: number): Scan => ({
      covered: lead,
      spans,
      held,
      tails: whole ? NO_TAILS : tails,
    });
    let tails = NO_TAILS;
    for (let at = starts.next(text, 0); at < text.length; at = starts.next(text, at + 1)) {
      const inside = at < masked;
      let end = NO;
      let from = at;
      let isOpen = false;
      let open = NO_TAILS;
      for (const pattern of starts.patternsAt(text, at)) {
        const found = matchForm(pattern, text, at, whole);
        if (found === OPEN) isOpen = true;
        else if (found > end) end = found;
      }
      // Inside of what is masked only a secret's form counts: it may reach further.
      if (!inside) {
        for (const rule of starts.rulesAt(text, at)) {
          if (rule.atWord && /[A-Za-z0-9]/.test(at === 0 ? before : text.charAt(at - 1))) continue;
          const found = matchToken(rule, text, at, whole);
          if (found.end === OPEN) isOpen = true;
          if (found.end < 0) continue;
          if (end === NO) from = found.from;
          if (found.end > end) end = found.end;
          const last = rule.parts.at(-1);
          if (found.end === text.length && typeof last === "object") open = [...open, last];
        }
      }
      if (isOpen) return result(at);
      if (end <= masked) continue;
      if (!inside) spans.push(from, end);
      else if (spans.length > 0) spans[spans.length - 1] = end;
      else lead = end;
      masked = end;
      tails = open;
    }
    return result(text.length);
  }

  function shown(text: string, { covered, spans, held }: Scan): string {
    let out = "";
    let at = covered;
    for (let index = 0; index < spans.length; index += 2) {
      out += text.slice(at, spans[index]) + MASK;
      at = spans[index + 1] ?? at;
    }
    return at === 0 && held === text.length ? text : out + text.slice(at, Math.max(at, held));
  }

  function stream(): TextStream {
    let before = "";
    let held = "";
    /** Of `held`, and of what comes next: it belongs to what is masked already. */
    let covered = 0;
    let tails: readonly Run[] = [];

    function advance(piece: string, whole: boolean): string {
      const text = held + piece;
      if (tails.length > 0) {
        const lengths = tails.map((tail) => goesOn(tail, piece));
        const longest = Math.max(...lengths);
        covered += longest;
        tails = longest === piece.length ? tails.filter((_tail, index) => lengths[index] === longest) : [];
      }
      const found = scan(text, before, covered, whole);
      const end = Math.max(found.covered, found.spans.at(-1) ?? 0);
      if (found.spans.length > 0) ({ tails } = found);
      covered = Math.max(0, end - found.held);
      before = found.held === 0 ? before : text.charAt(found.held - 1);
      held = text.slice(found.held);
      return shown(text, found);
    }

    return {
      push: (piece) => (piece === "" ? "" : advance(piece, false)),
      end: () => {
        const last = advance("", true);
        before = "";
        covered = 0;
        tails = [];
        return last;
      },
    };
  }

  return {
    mask: (text) => shown(text, scan(text, "", 0, true)),
    stream,
    maskWindow(text, from, to) {
      const { spans } = scan(text, "", 0, true);
      const inside: number[] = [];
      for (let index = 0; index < spans.length; index += 2) {
        const [first = 0, last = 0] = [spans[index], spans[index + 1]];
        if (first < to && last > from) inside.push(Math.max(first, from) - from, Math.min(last, to) - from);
      }
      const window = text.slice(from, to);
      return shown(window, { covered: 0, spans: inside, held: window.length, tails: NO_TAILS });
    },
  };
}
