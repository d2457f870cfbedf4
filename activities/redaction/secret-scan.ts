/** Where the secrets of a text are. Pure. */
import { matchForm, matchToken, NO, OPEN } from "./secret-match.ts";
import type { SecretStarts } from "./secret-starts.ts";
import { SpelledText } from "./spelled-text.ts";
import type { Run } from "./token-rules.ts";

export const NO_TAILS: readonly Run[] = [];

export interface Scan {
  /** How many characters at the beginning belong to a secret that was masked before. */
  readonly covered: number;
  /** The places to mask: start and end (exclusive) of each in turn. */
  readonly spans: number[];
  /** From here on, the text that follows must decide. */
  readonly held: number;
  /** Tokens that end where the text does, and may continue. */
  readonly tails: readonly Run[];
}

interface Piece {
  readonly text: string;
  /** The character in front of the text. */
  readonly before: string;
  /** How many characters at the beginning belong to a secret that was masked before. */
  readonly covered: number;
  /** Whether the text ends here. */
  readonly whole: boolean;
}

export function scanSecrets(starts: SecretStarts, piece: Piece): Scan {
  const { text, whole } = piece;
  const spelled = new SpelledText(text);
  const spans: number[] = [];
  let masked = piece.covered;
  let { covered } = piece;
  let tails = NO_TAILS;
  const result = (held: number): Scan => ({ covered, spans, held, tails: whole ? NO_TAILS : tails });
  for (let at = starts.next(text, 0); at < text.length; at = starts.next(text, at + 1)) {
    const found = new FoundAt(at);
    found.addForms(starts, spelled, whole);
    // Within a masked place only a secret's form counts: it may reach further.
    const isInside = at < masked;
    if (!isInside) found.addTokens(starts, piece);
    if (found.isOpen) return result(at);
    if (found.end <= masked) continue;
    if (!isInside) spans.push(found.from, found.end);
    else if (spans.length > 0) spans[spans.length - 1] = found.end;
    else covered = found.end;
    masked = found.end;
    ({ tails } = found);
  }
  return result(text.length);
}

/** The longest secret that begins at a place. */
class FoundAt {
  end = NO;
  /** Where its mask begins. */
  from: number;
  /** Whether the text that follows must decide. */
  isOpen = false;
  tails = NO_TAILS;
  readonly #at: number;

  constructor(at: number) {
    this.#at = at;
    this.from = at;
  }

  addForms(starts: SecretStarts, spelled: SpelledText, whole: boolean): void {
    spelled.reachedEnd = false;
    const patterns = starts.patternsAt(spelled, this.#at);
    if (spelled.reachedEnd && !whole) this.isOpen = true;
    for (const pattern of patterns) {
      const end = matchForm(pattern, spelled, this.#at, whole);
      if (end === OPEN) this.isOpen = true;
      else if (end > this.end) this.end = end;
    }
  }

  addTokens(starts: SecretStarts, { text, before, whole }: Piece): void {
    const previous = this.#at === 0 ? before : text.charAt(this.#at - 1);
    for (const rule of starts.rulesAt(text, this.#at)) {
      if (rule.atWord && /[A-Za-z0-9]/.test(previous)) continue;
      const { end, from } = matchToken(rule, text, this.#at, whole);
      if (end === OPEN) this.isOpen = true;
      if (end < 0) continue;
      if (this.end === NO) this.from = from;
      if (end > this.end) this.end = end;
      const last = rule.parts.at(-1);
      if (end === text.length && typeof last === "object") this.tails = [...this.tails, last];
    }
  }
}
