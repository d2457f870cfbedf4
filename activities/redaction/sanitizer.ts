/**
 * The one sanitizer for text (invariant 12): whatever enters the model, Postgres, Temporal or a log passes here. Pure.
 * Cleaned first, masked second, so that no terminal sequence hides a secret.
 */
import { cleanStream, cleanText, type TextStream } from "../contract/clean-text.ts";
import { createMasker } from "./secret-mask.ts";

export interface Sanitizer {
  /** The text well-formed, free of controls and of every configured secret; never longer than it came. */
  readonly clean: (text: string) => string;
  /** The same for text that comes in pieces: they give together what `clean` gives for the whole. */
  readonly stream: () => TextStream;
  /**
   * The part of a text between two places, masked by what the whole text shows: a secret that reaches over one of them is
   * masked on both sides. Not cleaned.
   */
  readonly maskWindow: (text: string, from: number, to: number) => string;
}

/** @param secrets values that must never show; those under 8 characters are left alone, being words */
export function createSanitizer(secrets: readonly string[]): Sanitizer {
  const masker = createMasker(secrets);
  return {
    clean: (text) => masker.mask(cleanText(text)),
    maskWindow: (text, from, to) => masker.maskWindow(text, from, to),
    stream: () => {
      const cleaner = cleanStream();
      const masking = masker.stream();
      return {
        push: (piece) => masking.push(cleaner.push(piece)),
        end: () => masking.push(cleaner.end()) + masking.end(),
      };
    },
  };
}
