/** The forms in which a secret may turn up in text. Pure. */

/** Shorter values may be words; masking them would spoil ordinary text. */
const MIN_SECRET_CHARS = 8;
/** Shorter encodings of a secret's middle cannot be distinguished from chance. */
const MIN_ENCODED_CHARS = 8;
/** Bytes that `base64` writes into one line: 76 characters. */
const LINE_BYTES = 57;

/**
 * What may stand between two units of a form: `none`; `invisible` characters and line ends; `wrap`, the line ends of an
 * encoder, also escaped; `separators` between the bytes of a hex dump.
 */
export type Gap = "none" | "invisible" | "wrap" | "separators";

/**
 * A form is a row of units, each a list of spellings of which the first that fits counts. A spelling of one character
 * stands for itself; a longer one is compared without regard to ASCII case; a backslash in one stands for any number of
 * them, so that text that was escaped twice is found as well.
 */
export interface SecretForm {
  readonly units: readonly (readonly string[])[];
  readonly gap: Gap;
}

/** All forms of all secrets. `clean` is what text went through before it is searched. */
export function secretForms(
  secrets: readonly string[],
  clean: (text: string) => string,
): readonly SecretForm[] {
  return secrets
    .map((secret) => secret.trim())
    .filter((value) => value.length >= MIN_SECRET_CHARS)
    .flatMap((value) => formsOf(clean(value), Buffer.from(value, "utf8")));
}

function formsOf(value: string, bytes: Buffer): SecretForm[] {
  const twice = onceEncoded(bytes).flatMap((text) => base64Forms(Buffer.from(text)));
  const encoded = new Set([...base64Forms(bytes), ...twice]);
  const base32 = new Set(base32Forms(bytes));
  const forms: SecretForm[] = [
    { units: Array.from(bytes, (byte) => [hex(byte)]), gap: "separators" },
    ...[...encoded].map((text): SecretForm => ({ units: Array.from(text, base64Unit), gap: "wrap" })),
    ...[...base32].map((text): SecretForm => ({ units: Array.from(text, base32Unit), gap: "wrap" })),
  ];
  // A value that was mostly control characters may be only a word after cleaning.
  if (value.length < MIN_SECRET_CHARS) return forms;
  const points = Array.from(value);
  const literal = points.map((point) => [point]);
  const escaped = escapedUnits(points);
  return [
    { units: escaped.length < MIN_ENCODED_CHARS ? literal : escaped, gap: "invisible" },
    { units: literal.toReversed(), gap: "none" },
    ...forms,
  ];
}

const hex = (byte: number): string => byte.toString(16).padStart(2, "0");

/** How each character is written by JSON, JavaScript, Python, URLs, forms and HTML: each on its own, so also mixed. */
function escapedUnits(points: readonly string[]): string[][] {
  return points.flatMap((point, index) => {
    const percent = Array.from(Buffer.from(point.toWellFormed()), (byte) => `%${hex(byte)}`).join("");
    const units = Array.from({ length: point.length }, (_unit, at) => point.charCodeAt(at));
    const unicode = units.map((unit) => `\\u${unit.toString(16).padStart(4, "0")}`).join("");
    const short = units[0] !== undefined && units[0] < 0x100 ? [`\\x${hex(units[0])}`] : [];
    const bytes = [...percent.matchAll(/%(..)/g)].map((found) => `\\x${found[1]}`).join("");
    const all = [percent, unicode, bytes, ...short, ...(NAMED[point] ?? [])];
    // A run of backslashes is one unit: how many stand for one depends on how often the text was escaped.
    if (point === "\\") return points[index - 1] === "\\" ? [] : [[...all, "\\"]];
    if (/[!-/:-@[-`{-~]/.test(point)) all.push(`\\${point}`);
    return [[point, ...new Set(all)]];
  });
}

const NAMED: Readonly<Record<string, readonly string[]>> = {
  "\n": ["\\n"],
  "\r": ["\\r"],
  "\t": ["\\t"],
  " ": ["+"],
  "&": ["&amp;"],
  "<": ["&lt;"],
  ">": ["&gt;"],
  '"': ["&quot;", "&#34;"],
  "'": ["&#39;", "&apos;"],
};

/** Characters of base64 in both alphabets, as they are and in URLs and JSON. */
function base64Unit(char: string): readonly string[] {
  if (char === "+") return ["+", "-", "%2b"];
  return char === "/" ? ["/", "_", "%2f", "\\/"] : [char];
}

function base32Unit(char: string): readonly string[] {
  const lower = char.toLowerCase();
  return lower === char ? [char] : [char, lower];
}

/** The encodings that may be encoded once more: in either alphabet, in one line or wrapped. */
function onceEncoded(bytes: Buffer): string[] {
  const wrapped = bytes.length > LINE_BYTES ? [bytes.toString("base64").replace(/.{76}/g, "$&\n")] : [];
  return [...base64Forms(bytes), ...base64Forms(bytes, "base64url"), ...wrapped];
}

/** The part of the bytes' base64 that is sure to appear, for each of the three alignments. */
function base64Forms(bytes: Buffer, alphabet: "base64" | "base64url" = "base64"): string[] {
  return [0, 1, 2].flatMap((before) => {
    const padded = Buffer.concat([Buffer.alloc(before), bytes]);
    return sure(padded.toString(alphabet), before, padded.length, 6);
  });
}

const BASE32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/** The same for base32, at each of its five alignments. */
function base32Forms(bytes: Buffer): string[] {
  return [0, 1, 2, 3, 4].flatMap((before) => {
    let text = "";
    let value = 0;
    let bits = 0;
    for (const byte of Buffer.concat([Buffer.alloc(before), bytes])) {
      value = (value << 8) | byte;
      bits += 8;
      for (; bits >= 5; bits -= 5) text += BASE32.charAt((value >> (bits - 5)) & 31);
      value &= (1 << bits) - 1;
    }
    return sure(text, before, before + bytes.length, 5);
  });
}

/** Without the characters that also depend on the bytes before or after. */
function sure(text: string, before: number, bytes: number, bits: number): string[] {
  const inside = text.slice(Math.ceil((before * 8) / bits), Math.floor((bytes * 8) / bits));
  return inside.length >= MIN_ENCODED_CHARS ? [inside] : [];
}
