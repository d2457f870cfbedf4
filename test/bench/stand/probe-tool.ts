/** A tool that does nothing and answers with as many characters as it is asked for, of words that do not compress. */
import { z } from "zod";
import { typedTool } from "../../../activities/tools/tool.ts";

const input = z.strictObject({ key: z.string(), chars: z.number().int().positive() });

const WORDS =
  "worker ledger step answer table queue signal river harvest lamp error path build test card deck review reset volume"
    .split(" ")
    .flatMap((word) => [word, `${word}s`, `un${word}`, `${word}-${word.length}`]);

/** The same words for the same key. */
export function wordsOf(key: string, chars: number): string {
  let state = 7;
  for (const char of key) state = (state * 31 + (char.codePointAt(0) ?? 0)) | 0;
  let text = key;
  while (text.length < chars) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0;
    text += ` ${WORDS[(state >>> 8) % WORDS.length] ?? ""}`;
  }
  return text.slice(0, chars);
}

export const probe = typedTool({
  name: "probe",
  description: "Answers with words.",
  input,
  readOnly: true,
  about: ({ key }) => key,
  run: async ({ key, chars }) => ({ text: wordsOf(key, chars) }),
});
