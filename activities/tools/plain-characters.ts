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
