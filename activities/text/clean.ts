/**
 * Text fit for every reader: no lone surrogate, no NUL, no terminal control; without what a reader does not see, or what
 * Temporal's Web UI would render.
 *
 * Kept: \n, \t and \r (a file's CRLF is content, and harmless to providers, Postgres and logs). Stripped: whole
 * terminal sequences (colours, cursor moves, and the queries a terminal would answer). All other control characters
 * become their visible pictures (U+2400 block), which keeps the length: cleaning never makes a text longer.
 */
import { cutChars } from "./cut.ts";

// Lengths are bounded so that an unfinished sequence never swallows or holds back more than this.
const SEQUENCE = new RegExp(
  [
    String.raw`\u001b\[[0-?]{0,64}[ -/]{0,8}[@-~]`, // CSI: colours, cursor, queries such as ESC [ 6 n
    String.raw`\u001b\][^\u0007\u001b]{0,2000}(?:\u0007|\u001b\\)`, // OSC: titles, links, colour queries
    String.raw`\u001b[PX^_][^\u001b]{0,2000}\u001b\\`, // DCS, SOS, PM, APC
    String.raw`\u001b[ -/]{1,8}[0-~]`, // character sets
    String.raw`\u001b[0-OQ-WYZ\\=>a-~]`, // two-character escapes; not [ ] P X ^ _
  ].join("|"),
  "g",
);

/** The end of a text that further text could turn into a complete sequence. */
const UNFINISHED = new RegExp(
  [
    String.raw`\u001b\[[0-?]{0,64}[ -/]{0,8}$`,
    String.raw`\u001b\][^\u0007\u001b]{0,2000}\u001b?$`,
    String.raw`\u001b[PX^_][^\u001b]{0,2000}\u001b?$`,
    String.raw`\u001b[ -/]{0,8}$`,
  ].join("|"),
);

// oxlint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/;
const CONTROLS = new RegExp(CONTROL.source, "g");

/** The text without what some reader would reject or execute. Cleaning is idempotent. */
export function cleanText(text: string): string {
  const whole = text.isWellFormed() ? text : text.toWellFormed();
  if (!CONTROL.test(whole)) return whole;
  const stripped = whole.includes("\u001b") ? whole.replace(SEQUENCE, "") : whole;
  return stripped.replace(CONTROLS, picture);
}

function picture(control: string): string {
  const code = control.charCodeAt(0);
  if (code < 0x20) return String.fromCharCode(0x24_00 + code);
  // DEL has a picture; the C1 controls have none.
  return code === 0x7f ? "\u2421" : "\uFFFD";
}

export interface TextStream {
  /** Takes a chunk and returns the text that is safe to pass on so far, possibly empty. */
  push(piece: string): string;
  /** Ends the stream and returns the rest. */
  end(): string;
}

/** Cleans text that arrives in chunks: the outputs joined equal `cleanText` of the whole. */
export function cleanStream(): TextStream {
  let pending = "";
  return {
    push: (piece) => {
      const text = pending + piece;
      const cut = unfinishedFrom(text);
      pending = text.slice(cut);
      return cleanText(text.slice(0, cut));
    },
    end: () => {
      const rest = cleanText(pending);
      pending = "";
      return rest;
    },
  };
}

function unfinishedFrom(text: string): number {
  const last = text.charCodeAt(text.length - 1);
  const surrogate = last >= 0xd8_00 && last <= 0xdb_ff ? text.length - 1 : text.length;
  const escape = text.lastIndexOf("\u001b");
  if (escape === -1) return surrogate;
  // A sequence may hold one more escape (its terminator), so the search starts before the last escape.
  const from = Math.max(0, escape - 2_100);
  const unfinished = UNFINISHED.exec(text.slice(from));
  return Math.min(surrogate, unfinished === null ? surrogate : from + unfinished.index);
}

/**
 * Characters that a reader does not see, or that change the order in which others are shown: reordering marks, characters without width, fillers, selectors, and the tags in which text can be written that nobody sees.
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

/** The same text without hidden characters. */
export const withoutHidden = (text: string): string =>
  text.replace(PATTERN, (char: string, hidden: string | undefined) => (hidden === undefined ? char : ""));

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

/**
 * The same text with all Markdown and HTML disabled: links, images, code, headings, and formulas, which the Web UI
 * renders for text between two `$`. Hidden characters are shown as codes.
 */
export function inertMarkdown(text: string): string {
  return showHidden(text)
    .replace(/[\\`*_{}[\]()#+!|<>&~$]/g, (sign) => `\\${sign}`)
    .replace(/:\/\//g, ":\\//");
}

/** Same limit as the name of the person who answers a question. */
const MAX_NAME_CHARS = 100;

/**
 * Who did something, as reported by that person's client: a label for others, not proof.
 * @returns one clean line of at most 100 characters; undefined if there is nothing to show
 */
export function personName(name: unknown): string | undefined {
  if (typeof name !== "string") return undefined;
  return cutChars(cleanText(name).replace(/\s+/g, " ").trim(), MAX_NAME_CHARS) || undefined;
}

/** A value with every text in it cleaned, keys too. */
export function cleanDeep(value: unknown, clean: (text: string) => string): unknown {
  if (typeof value === "string") return clean(value);
  if (Array.isArray(value)) return value.map((item) => cleanDeep(item, clean));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [clean(key), cleanDeep(item, clean)]));
}
