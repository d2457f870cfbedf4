/** Hides secrets in text, whole or in pieces. */
import { cleanText, type TextStream } from "../text/clean.ts";
import { secretForms } from "./secret-forms.ts";
import { createStarts, type SecretStarts } from "./secret-starts.ts";
import { goesOn, matchForm, matchToken, NO, OPEN } from "./secret-match.ts";
import { TOKEN_RULES, type CharRun } from "./token-rules.ts";
import { SpelledText } from "./spelled-text.ts";

/** Replaces a secret. No longer than the shortest secret, so that masking never lengthens a text. */
export const MASK = "[masked]";

export interface Masker {
  /** Masks these secrets too, from now on, in streams that have begun as well. Costs nothing for those that it has. */
  learn(secrets: readonly string[]): void;
  mask(text: string): string;
  /** As `mask`, with a mark of one's own in the place of a secret of so many characters. */
  replace(text: string, mark: (chars: number) => string): string;
  /** The same for text in pieces; a secret may be split over any number of them. */
  stream(): TextStream;
  /** What `mask` shows of the text between two places: of a secret that crosses one of them, the part inside is masked too. */
  maskWindow(text: string, from: number, to: number): string;
}

/**
 * Masks each secret of at least 8 characters in the forms of `secretForms`, and what looks like a well-known vendor's
 * token. Time is linear in the text's length.
 *
 * @param rules what a vendor's token looks like
 * @param formsOf the forms of secrets
 */
export function createMasker(secrets: readonly string[], rules = TOKEN_RULES, formsOf = secretForms): Masker {
  const starts = createStarts(rules);
  const learned = new Set<string>();
  const learn = (more: readonly string[]) => {
    const fresh = [...new Set(more)].filter((secret) => !learned.has(secret));
    for (const secret of fresh) learned.add(secret);
    starts.add(formsOf(fresh, cleanText));
  };
  learn(secrets);
  const scanWhole = (text: string) => scanSecrets(starts, { text, before: "", covered: 0, isLast: true });
  return {
    learn,
    mask: (text) => maskedText(text, scanWhole(text)),
    replace: (text, mark) => maskedText(text, scanWhole(text), mark),
    stream: () => new MaskedStream(starts),
    maskWindow(text, from, to) {
      const { spans } = scanWhole(text);
      const inside: number[] = [];
      for (let index = 0; index < spans.length; index += 2) {
        const [first = 0, last = 0] = [spans[index], spans[index + 1]];
        if (first < to && last > from) inside.push(Math.max(first, from) - from, Math.min(last, to) - from);
      }
      const window = text.slice(from, to);
      return maskedText(window, { covered: 0, spans: inside, decidedChars: window.length });
    },
  };
}

function maskedText(
  text: string,
  { covered, spans, decidedChars }: Omit<Scan, "tails">,
  mark: (chars: number) => string = () => MASK,
): string {
  let out = "";
  let at = covered;
  for (let index = 0; index < spans.length; index += 2) {
    const [from = at, to = at] = [spans[index], spans[index + 1]];
    out += text.slice(at, from) + mark(to - from);
    at = to;
  }
  return at === 0 && decidedChars === text.length ? text : out + text.slice(at, Math.max(at, decidedChars));
}

class MaskedStream implements TextStream {
  readonly #starts: SecretStarts;
  #before = "";
  #held = "";
  /** How many characters of `#held`, and of the text that follows it, are masked already. */
  #covered = 0;
  #tails = NO_TAILS;

  constructor(starts: SecretStarts) {
    this.#starts = starts;
  }

  // Arrow properties: users pass them on without the object.
  readonly push = (piece: string): string => (piece === "" ? "" : this.#advance(piece, false));

  readonly end = (): string => {
    const last = this.#advance("", true);
    this.#before = "";
    this.#covered = 0;
    this.#tails = [];
    return last;
  };

  #advance(piece: string, isLast: boolean): string {
    const text = this.#held + piece;
    this.#continueTails(piece);
    const scan = scanSecrets(this.#starts, {
      text,
      before: this.#before,
      covered: this.#covered,
      isLast,
    });
    const end = Math.max(scan.covered, scan.spans.at(-1) ?? 0);
    if (scan.spans.length > 0) this.#tails = scan.tails;
    this.#covered = Math.max(0, end - scan.decidedChars);
    if (scan.decidedChars > 0) this.#before = text.charAt(scan.decidedChars - 1);
    this.#held = text.slice(scan.decidedChars);
    return maskedText(text, scan);
  }

  /** Characters that continue a token at the end of the text before belong to its mask. */
  #continueTails(piece: string): void {
    if (this.#tails.length === 0) return;
    const text = (this.#held.at(-1) ?? this.#before) + piece;
    const lengths = this.#tails.map((tail) => goesOn(tail, text));
    const longest = Math.max(...lengths);
    this.#covered += longest;
    this.#tails =
      longest === piece.length ? this.#tails.filter((_tail, index) => lengths[index] === longest) : [];
  }
}

/** Where the secrets of a text are. */
const NO_TAILS: readonly CharRun[] = [];

interface Scan {
  /** How many characters at the beginning belong to a secret that was masked before. */
  readonly covered: number;
  /** The places to mask: start and end (exclusive) of each in turn. */
  readonly spans: number[];
  /** From here on, the text that follows must decide. */
  readonly decidedChars: number;
  /** Tokens that end where the text does, and may continue. */
  readonly tails: readonly CharRun[];
}

interface Piece {
  readonly text: string;
  /** The character in front of the text. */
  readonly before: string;
  /** How many characters at the beginning belong to a secret that was masked before. */
  readonly covered: number;
  /** Whether the text ends here. */
  readonly isLast: boolean;
}

function scanSecrets(starts: SecretStarts, piece: Piece): Scan {
  const { text, isLast } = piece;
  const spelled = new SpelledText(text);
  const spans: number[] = [];
  let masked = piece.covered;
  let { covered } = piece;
  let tails = NO_TAILS;
  const result = (decidedChars: number): Scan => ({
    covered,
    spans,
    decidedChars,
    tails: isLast ? NO_TAILS : tails,
  });
  for (let at = starts.next(text, 0); at < text.length; at = starts.next(text, at + 1)) {
    const match = new FoundAt(at);
    match.addForms(starts, spelled, isLast);
    // Within a masked place only a secret's form counts: it may reach further.
    const isInside = at < masked;
    if (!isInside) match.addTokens(starts, piece);
    if (match.isOpen) return result(at);
    if (match.end <= masked) continue;
    if (!isInside) spans.push(match.from, match.end);
    else if (spans.length > 0) spans[spans.length - 1] = match.end;
    else covered = match.end;
    masked = match.end;
    ({ tails } = match);
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

  addForms(starts: SecretStarts, spelled: SpelledText, isLast: boolean): void {
    spelled.reachedEnd = false;
    const patterns = starts.patternsAt(spelled, this.#at);
    if (spelled.reachedEnd && !isLast) this.isOpen = true;
    for (const pattern of patterns) {
      const end = matchForm(pattern, spelled, this.#at, isLast);
      if (end === OPEN) this.isOpen = true;
      else if (end > this.end) this.end = end;
    }
  }

  addTokens(starts: SecretStarts, { text, before, isLast }: Piece): void {
    const previous = this.#at === 0 ? before : text.charAt(this.#at - 1);
    for (const rule of starts.rulesAt(text, this.#at)) {
      if (rule.atWord && /[A-Za-z0-9]/.test(previous)) continue;
      const { end, from } = matchToken(rule, text, this.#at, isLast);
      if (end === OPEN) this.isOpen = true;
      if (end < 0) continue;
      if (this.end === NO) this.from = from;
      if (end > this.end) this.end = end;
      const last = rule.parts.at(-1);
      if (end === text.length && typeof last === "object") this.tails = [...this.tails, last];
    }
  }
}
