/**
 * Text fit for every reader: no lone surrogate, no NUL, no terminal control. Pure.
 *
 * Kept: \n, \t and \r (a file's CRLF is content, and harmless to providers, Postgres and logs). Stripped: whole
 * terminal sequences (colours, cursor moves, and the queries a terminal would answer). All other control characters
 * become their visible pictures (U+2400 block), which keeps the length: cleaning never makes a text longer.
 */

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
  let held = "";
  return {
    push: (piece) => {
      const text = held + piece;
      const cut = unfinishedFrom(text);
      held = text.slice(cut);
      return cleanText(text.slice(0, cut));
    },
    end: () => {
      const rest = cleanText(held);
      held = "";
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
