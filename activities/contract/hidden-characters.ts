/** Characters that a reader does not see, or that change the order in which others are shown. Pure. */

/**
 * Reordering marks, characters without width, fillers, selectors, and the tags in which text can be written that nobody sees.
 * Source: Unicode's Default_Ignorable_Code_Point, Bidi_Control, and the separators of lines and paragraphs.
 */
const HIDDEN =
  "[\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\u3164\\ufe00-\\ufe0f\\ufeff" +
  "\\uffa0\\ufff0-\\ufffb\\u{1bca0}-\\u{1bca3}\\u{1d173}-\\u{1d17a}\\u{e0000}-\\u{e0fff}]";
/** What emoji and the scripts that join letters are written with, where they stand between such characters. */
const NEEDED = [
  String.raw`(?<=\p{Emoji})[\ufe0e\ufe0f]`,
  String.raw`(?<=[\p{Extended_Pictographic}\p{Emoji_Modifier}\ufe0f])\u200d(?=\p{Extended_Pictographic})`,
  String.raw`(?<=[\p{scx=Arab}\p{scx=Syrc}\p{scx=Deva}\p{scx=Beng}\p{scx=Gujr}\p{scx=Guru}\p{scx=Knda}\p{scx=Mlym}\p{scx=Orya}\p{scx=Sinh}\p{scx=Taml}\p{scx=Telu}\p{scx=Khmr}\p{scx=Mymr}\p{scx=Mong}])[\u200c\u200d](?=\p{L})`,
];

/** Also used by the web page, as text. The first group is what is hidden. */
export const HIDDEN_PATTERN = `${NEEDED.join("|")}|(${HIDDEN})`;

const PATTERN = new RegExp(HIDDEN_PATTERN, "gu");

/** The same text with each hidden character replaced by its code, such as `\u202e` or `\u{e0041}`. Idempotent. */
export function showHidden(text: string): string {
  return text.replace(PATTERN, (char: string, hidden: string | undefined) => {
    if (hidden === undefined) return char;
    const code = (hidden.codePointAt(0) ?? 0).toString(16);
    return code.length > 4 ? `\\u{${code}}` : `\\u${code.padStart(4, "0")}`;
  });
}

/** JSON in which hidden characters are escaped: the same value. */
export function escapeHidden(json: string): string {
  return json.replace(PATTERN, (char: string, hidden: string | undefined) =>
    hidden === undefined
      ? char
      : Array.from(
          { length: hidden.length },
          (_half, at) => `\\u${hidden.charCodeAt(at).toString(16).padStart(4, "0")}`,
        ).join(""),
  );
}
