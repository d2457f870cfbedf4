import { diffArrays } from "diff";

/**
 * Characters that models write another way than files have them: typographic dashes, quotes and blanks. Pure. One character
 * becomes one, so a place in the plain text is the same place in the text itself.
 */
export function plainCharacters(text: string): string {
  // oxlint-disable-next-line no-control-regex
  if (/^[\u0000-\u009f]*$/.test(text)) return text;
  return text
    .replace(/[\u2010-\u2015\u2212\uFE58\uFE63\uFF0D]/g, "-")
    .replace(/[\u2018-\u201B\u2032\u02BC]/g, "'")
    .replace(/[\u201C-\u201F\u2033]/g, '"')
    .replace(/[\u00A0\u1680\u2000-\u200A\u202F\u205F\u3000]/g, " ");
}

/**
 * A new text for a place in a file: what it has in common with the old text, but for typographic characters, keeps the file's own
 * characters.
 */
export function keepOwnCharacters(old: string, replacement: string): string {
  const plainOld = plainCharacters(old);
  if (plainOld === old && plainCharacters(replacement) === replacement) return replacement;
  const words = (text: string): string[] => text.match(/[\p{L}\p{N}]+|[^\p{L}\p{N}]/gsu) ?? [];
  const changes = diffArrays(words(plainOld), words(plainCharacters(replacement)), { maxEditLength: 2_000 });
  if (changes === undefined) return replacement;
  let result = "";
  let atOld = 0;
  let atNew = 0;
  for (const { value, added, removed } of changes) {
    const length = value.join("").length;
    if (added === true) result += replacement.slice(atNew, atNew + length);
    else if (removed !== true) result += old.slice(atOld, atOld + length);
    if (added !== true) atOld += length;
    if (removed !== true) atNew += length;
  }
  return result;
}
