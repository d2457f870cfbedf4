/**
 * The one sanitizer for text (invariant 12): whatever enters the model, Postgres, Temporal or a log passes here.
 * Text is cleaned before it is masked, so that no terminal sequence can hide a secret.
 */
import { cleanStream, cleanText, type TextStream } from "../text/clean.ts";
import { createMasker } from "./secret-mask.ts";

export interface Sanitizer {
  /** The text, well-formed and without control characters or any configured secret; never longer than the original. */
  readonly clean: (text: string) => string;
  /** The same for text in pieces: together the results equal `clean` of the whole text. */
  readonly stream: () => TextStream;
  /**
   * The part of a text between two places, masked by what the whole text shows: of a secret that crosses one of them, the
   * part inside is masked too. Not cleaned.
   */
  readonly maskWindow: (text: string, from: number, to: number) => string;
}

type Made = () => readonly string[];

/** Lists of secrets that grow, as one: a new array if one of them changed. */
export function joinedSecrets(...lists: readonly Made[]): Made {
  let parts: readonly (readonly string[])[] = [];
  let joined: readonly string[] = [];
  return () => {
    const now = lists.map((list) => list());
    if (now.length !== parts.length || now.some((part, index) => part !== parts[index])) {
      parts = now;
      joined = now.flat();
    }
    return joined;
  };
}

/**
 * @param secrets values that must never be shown; those under 8 characters are ignored, because they may be words
 * @param createdLater returns secrets that were created later: a new array if they changed
 */
export function createSanitizer(secrets: readonly string[], createdLater: Made = () => secrets): Sanitizer {
  let learned: readonly string[] = secrets;
  const ownMasker = createMasker(secrets);
  const masker = () => {
    const now = createdLater();
    if (now !== learned) {
      learned = now;
      ownMasker.learn(now);
    }
    return ownMasker;
  };
  return {
    clean: (text) => masker().mask(cleanText(text)),
    maskWindow: (text, from, to) => masker().maskWindow(text, from, to),
    stream: () => {
      const cleaner = cleanStream();
      const masking = masker().stream();
      return {
        push: (piece) => masking.push(cleaner.push(piece)),
        end: () => masking.push(cleaner.end()) + masking.end(),
      };
    },
  };
}
