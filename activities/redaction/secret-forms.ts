/** The forms in which a secret may turn up in text. */

import { NAMED_CHARACTERS } from "./spelled-text.ts";

/** Shorter values may be words; masking them would spoil ordinary text. */
const MIN_SECRET_CHARS = 8;
/** Shorter encodings of a secret's middle cannot be distinguished from chance. */
const MIN_ENCODED_CHARS = 8;
/** Shorter lines of a secret of several lines may be words. */
const MIN_LINE_CHARS = 20;
/** Bytes that `base64` writes into one line: 76 characters. */
const LINE_BYTES = 57;

/**
 * What may stand between two units of a form: `quotes`, escapes, invisible characters and line ends; `wrap`, the line ends of
 * an encoder; `separators` between the bytes of a list or a dump; `columns`, the blanks and the row's end of a dump's.
 */
export type Gap = "quotes" | "wrap" | "separators" | "columns";

/** A list of alternatives, each a row of codes. Each code counts however the text spells it (see `spelled-text.ts`). */
export type FormUnit = readonly (readonly number[])[];

/** A form is a row of units. A secret has dozens of forms, and a text begins like one of them now and then. */
export interface SecretForm {
  /** The first two units, by which its beginning is found. */
  readonly heads: readonly FormUnit[];
  /** All of them, made when a text first begins like it. */
  readonly units: () => readonly FormUnit[];
  readonly gap: Gap;
  /** How many units the rows of a dump keep together; 1 by default. */
  readonly cell?: number;
  /** Whether it is the middle of a secret in a row that may have all of its characters once more. */
  readonly inRows?: true;
}

function formOf<Part>(
  parts: readonly Part[],
  unitOf: (part: Part, index: number) => FormUnit,
  kind: Omit<SecretForm, "heads" | "units">,
): SecretForm {
  return { heads: parts.slice(0, 2).map(unitOf), units: () => parts.map(unitOf), ...kind };
}

/** All forms of all secrets. `clean` is what text went through before it is searched. */
export function secretForms(
  secrets: readonly string[],
  clean: (text: string) => string,
): readonly SecretForm[] {
  return secrets
    .map((secret) => secret.trim())
    .filter((value) => value.length >= MIN_SECRET_CHARS)
    .flatMap((value) => [...formsOf(value.toWellFormed(), clean(value)), ...linesOf(value).map(textForm)]);
}

/** The lines of a key, which `tail` or `grep` shows alone; not those that say what it is. */
function linesOf(value: string): string[] {
  const lines = value.split(/\r?\n|\\n/).map((line) => line.trim());
  return lines.length < 2
    ? []
    : lines.filter(
        (line) => line.length >= MIN_LINE_CHARS && /^[\w+/=-]+$/.test(line) && !/^-|-$/.test(line),
      );
}

function formsOf(value: string, cleaned: string): SecretForm[] {
  const bytes = Buffer.from(value, "utf8");
  const escaped = ESCAPES.map((escape) => escape(value)).filter((text) => text !== value);
  const twice = [...onceEncoded(bytes), ...escaped].flatMap((text) => base64Forms(Buffer.from(text)));
  // As PowerShell takes commands, and Windows writes files.
  const wide = base64Forms(Buffer.from(value, "utf16le"));
  const encoded = new Set([...base64Forms(bytes), ...wide, ...twice]);
  const base32 = new Set(base32Forms(bytes));
  // A value that was mostly control characters may be only a word after cleaning.
  // A dump's column has a dot for what is no ASCII.
  const dotted = Array.from(bytes, (byte) => (isCharacter(byte) ? String.fromCharCode(byte) : ".")).join("");
  const texts = new Set([value, cleaned, dotted].filter((text) => text.length >= MIN_SECRET_CHARS));
  return [
    ...[...texts].map(textForm),
    ...[...texts].map((text) => textForm(Array.from(text).toReversed().join(""))),
    ...[bytes, ...new Set(escaped)].map((text) =>
      formOf(Array.from(Buffer.from(text).toString("hex")), eitherCase, { gap: "separators", cell: 2 }),
    ),
    decimalForm([...bytes]),
    formOf([...bytes], (byte) => [codes(byte.toString(8).padStart(3, "0"))], { gap: "separators" }),
    ...dumpForms(bytes),
    ...[...encoded].map((text) => formOf(Array.from(text), base64Unit, { gap: "wrap" })),
    ...[...base32].map((text) => formOf(Array.from(text), eitherCase, { gap: "wrap" })),
  ];
}

/**
 * Quotes and escapes in front of a value say little, and are no start to look for: each place in a long run of them would be.
 */
const withoutOpening = (text: string): string => {
  const rest = text.replace(/^['"`\\$^=]+/, "");
  return rest.length >= MIN_SECRET_CHARS ? rest : text;
};

/** A character's code; its halves, as JSON writes it; its bytes, as URLs, C and Python do. */
function textForm(value: string): SecretForm {
  const text = withoutOpening(value);
  // How many backslashes stand for one depends on how often the text was escaped, so a run of them is one unit.
  const points = Array.from(text.replace(/\\+/g, "\\"));
  return formOf(points, pointUnit, { gap: "quotes" });
}

function pointUnit(point: string): number[][] {
  const code = point.codePointAt(0) ?? 0;
  if (code < 0x80) return [[code]];
  const halves = Array.from({ length: point.length }, (_half, at) => point.charCodeAt(at));
  return [...(point.length > 1 ? [[code]] : []), halves, [...Buffer.from(point)]];
}

const codes = (text: string): number[] => Array.from(text, (char) => char.charCodeAt(0));

function eitherCase(char: string): number[][] {
  return [...new Set([char.toLowerCase(), char.toUpperCase()])].map(codes);
}

/** A list of bytes in decimal: each but the last ends with a separator, which the gap may lengthen. */
function decimalForm(bytes: readonly number[]): SecretForm {
  const unitOf = (byte: number, index: number) =>
    (index === bytes.length - 1 ? [""] : [",", " ", "\n"]).map((end) => codes(`${byte}${end}`));
  return formOf(bytes, unitOf, { gap: "separators" });
}

/** What `od -c` and `od -a` write for characters that cannot be seen. */
const OD_NAMES: Readonly<Record<number, readonly string[]>> = {
  9: [String.raw`\t`, "ht"],
  10: [String.raw`\n`, "nl"],
  13: [String.raw`\r`, "cr"],
  32: [" ", "sp"],
};
const isCharacter = (byte: number): boolean => byte >= 0x20 && byte < 0x7f;

/**
 * The bytes as `od`, `hexdump`, `xxd -e` and `xxd -b` write them: as little-endian words of two or four bytes, which the secret
 * fills in each alignment, as bits, and as characters in columns of four.
 */
function dumpForms(bytes: Buffer): SecretForm[] {
  const wordForms = (size: number, radix: number, digits: number): SecretForm[] =>
    Array.from({ length: size }, (_none, before) => {
      const count = Math.floor((bytes.length - before) / size);
      return Array.from({ length: count }, (_word, at) => before + at * size);
    })
      .filter((offsets) => offsets.length * size >= MIN_ENCODED_CHARS / 2)
      .map((offsets) => formOf(offsets, wordAt(size, radix, digits), { gap: "columns", inRows: true }));
  const wordAt = (size: number, radix: number, digits: number) => (offset: number) => {
    const word = bytes.readUIntLE(offset, size).toString(radix).padStart(digits, "0");
    return [...new Set([word, word.toUpperCase()])].map(codes);
  };
  const column = (byte: number, at: number) => {
    const octal = byte.toString(8).padStart(3, "0");
    const cells = OD_NAMES[byte] ?? [isCharacter(byte) ? String.fromCharCode(byte) : octal];
    const next = bytes[at + 1];
    const ends = next === undefined ? [""] : [isCharacter(next) || OD_NAMES[next] ? "  " : " ", "\n"];
    return cells.flatMap((cell) => ends.map((end) => codes(cell + end)));
  };
  return [
    ...wordForms(2, 16, 4),
    ...wordForms(4, 16, 8),
    ...wordForms(2, 8, 6),
    formOf([...bytes], (byte) => [codes(byte.toString(2).padStart(8, "0"))], { gap: "columns" }),
    formOf([...bytes], column, { gap: "columns" }),
  ];
}

/** Characters of base64 in both alphabets. */
function base64Unit(char: string): number[][] {
  if (char === "+") return [codes("+"), codes("-")];
  return char === "/" ? [codes("/"), codes("_")] : [codes(char)];
}
const HTML: Readonly<Record<string, string>> = { "&": "amp", "<": "lt", ">": "gt", '"': "quot", "'": "#39" };
/** The characters that HTML writes by name although it need not, by their codes. */
const LATIN_1 = new Map([...NAMED_CHARACTERS].map(([name, code]) => [code, name] as const));
const html = (text: string) => text.replace(/[&<>"']/g, (char) => `&${HTML[char]};`);

/** What writes text as text and may itself be encoded as bytes, such as a JSON document in base64. */
const ESCAPES: readonly ((text: string) => string)[] = [
  (text) => JSON.stringify(text).slice(1, -1),
  (text) =>
    JSON.stringify(text)
      .slice(1, -1)
      .replace(/[^ -~]/g, (half) => `\\u${half.charCodeAt(0).toString(16).padStart(4, "0")}`),
  (text) => encodeURIComponent(text),
  (text) => encodeURIComponent(text).replace(/%../g, (byte) => byte.toLowerCase()),
  (text) => new URLSearchParams({ k: text }).toString().slice(2),
  html,
  (text) => html(text).replaceAll("&#39;", "&#x27;"),
  (text) => html(text).replace(/[\u00a0-\u00ff]/g, (char) => `&${LATIN_1.get(char.charCodeAt(0))};`),
  (text) => text.replaceAll("'", "''"),
  (text) => text.replaceAll("'", String.raw`'\''`),
  (text) => text.replace(/["$`\\]/g, String.raw`\$&`),
];

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
