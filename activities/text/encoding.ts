/**
 * How the text of a file is encoded. UTF-8 and UTF-16 are read and written as they are, byte for byte; the older encodings
 * are only guessed, so their text can be shown, but nothing may be written by a guess.
 */
export interface TextForm {
  readonly encoding: "utf-8" | "utf-16le" | "utf-16be";
  /** With a byte order mark, which is not part of the text. */
  readonly bom: boolean;
}

export type FoundText =
  | { readonly kind: "text"; readonly text: string; readonly form: TextForm }
  /** Not UTF-8, or with bytes that are not. `name` is for people, `label` for decoders; both undefined if nothing fits. */
  | {
      readonly kind: "guessed";
      readonly text: string;
      readonly name: string | undefined;
      readonly label: string | undefined;
    }
  | { readonly kind: "binary" };

/** Bytes that are looked at to tell encodings apart. */
const SAMPLE_BYTES = 262_144;

const UTF8: TextForm = { encoding: "utf-8", bom: false };

/** What the bytes are. @param isPart they are only the beginning of the file, so the last character may be cut */
export function readText(bytes: Uint8Array, isPart = false): FoundText {
  const [first, second, third] = bytes;
  const decode = (label: string, from = 0) => decoded(bytes.subarray(from), label, isPart);
  if (first === 0xff && second === 0xfe) return wide("utf-16le", true, decode("utf-16le", 2));
  if (first === 0xfe && second === 0xff) return wide("utf-16be", true, decode("utf-16be", 2));
  if (first === 0xef && second === 0xbb && third === 0xbf) {
    const text = decode("utf-8", 3);
    if (text !== undefined) return { kind: "text", text, form: { encoding: "utf-8", bom: true } };
  }
  const text = decode("utf-8");
  const bare = withoutMark(bytes, text !== undefined);
  const bareText = bare === undefined ? undefined : decode(bare);
  if (bare !== undefined && bareText !== undefined && isPlausible(bareText))
    return { kind: "text", text: bareText, form: { encoding: bare, bom: false } };
  return text === undefined ? guessed(bytes, decode) : { kind: "text", text, form: UTF8 };
}

/** The bytes of a text in the form that its file has. */
export function writeText(text: string, { encoding, bom }: TextForm): Uint8Array {
  const marked = bom ? `\uFEFF${text}` : text;
  if (encoding === "utf-8") return new TextEncoder().encode(marked);
  const bytes = Buffer.from(marked.toWellFormed(), "utf16le");
  return encoding === "utf-16le" ? bytes : bytes.swap16();
}

/** For people: `UTF-16 LE with a byte order mark`; undefined for plain UTF-8. */
export function formWords({ encoding, bom }: TextForm): string | undefined {
  const mark = bom ? "with" : "without";
  if (encoding === "utf-8") return bom ? "UTF-8 with a byte order mark" : undefined;
  return `UTF-16 ${encoding === "utf-16le" ? "LE" : "BE"} ${mark} a byte order mark`;
}

function decoded(bytes: Uint8Array, label: string, isPart: boolean): string | undefined {
  try {
    return new TextDecoder(label, { fatal: true, ignoreBOM: true }).decode(bytes, { stream: isPart });
  } catch {
    return undefined;
  }
}

function wide(encoding: "utf-16le" | "utf-16be", bom: boolean, text: string | undefined): FoundText {
  return text === undefined || text.includes("\0") || isChance(text)
    ? { kind: "binary" }
    : { kind: "text", text, form: { encoding, bom } };
}

/**
 * UTF-16 without a mark: its ASCII characters have a zero byte each, all on one side. Text that is UTF-8 but for zero bytes must
 * have them nearly everywhere; else it is text with zero bytes in it.
 */
function withoutMark(bytes: Uint8Array, isUtf8: boolean): "utf-16le" | "utf-16be" | undefined {
  const head = bytes.subarray(0, SAMPLE_BYTES);
  if (!head.includes(0) || bytes.length < 4 || bytes.length % 2 !== 0) return undefined;
  let even = 0;
  let odd = 0;
  let controls = 0;
  for (let at = 0; at < head.length; at += 1) {
    const byte = head[at] ?? 0;
    if (byte !== 0) controls += isControl(byte) ? 1 : 0;
    else if (at % 2 === 0) even += 1;
    else odd += 1;
  }
  if (isUtf8 && controls === 0 && Math.max(even, odd) < head.length * 0.3) return undefined;
  return odd > even ? "utf-16le" : "utf-16be";
}

const isControl = (code: number): boolean => (code < 0x20 && !isBlankControl(code)) || code === 0x7f;
/** Tab, line ends, form feed; and escape, which coloured logs have. */
const isBlankControl = (code: number): boolean => (code >= 0x08 && code <= 0x0d) || code === 0x1b;

const LATIN = /\p{Script=Latin}/u;
const SCRIPTS = [
  LATIN,
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\u30FC\u3005]/u,
  /[\p{Script=Greek}\p{Script=Cyrillic}\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Thai}\p{Script=Devanagari}\p{Script=Armenian}\p{Script=Georgian}]/u,
];
const IMPLAUSIBLE =
  /[\p{Cn}\p{Co}\u2300-\u23FF\u2440-\u24FF\u2800-\u2FFF\u3400-\u4DBF\uA000-\uABFF\p{Variation_Selector}]/gu;

function isPlausible(text: string): boolean {
  for (let at = 0; at < text.length; at += 1) if (isControl(text.charCodeAt(at))) return false;
  if ((text.match(IMPLAUSIBLE)?.length ?? 0) > text.length / 100) return false;
  const letters = text.match(/\p{L}/gu) ?? [];
  const known = letters.filter((letter) => SCRIPTS.some((script) => script.test(letter)));
  return known.length >= letters.length * 0.9 && !isChance(text);
}

/** A few characters without a blank, of letters that do not go together: any bytes may look so. */
function isChance(text: string): boolean {
  if (text.length >= 16 || /\s/.test(text)) return false;
  const scripts = SCRIPTS.filter((script) => script.test(text));
  return scripts.length > 1 || (scripts[0] === LATIN && !/[ -~]/.test(text));
}

function guessed(bytes: Uint8Array, decode: (label: string) => string | undefined): FoundText {
  const head = bytes.subarray(0, SAMPLE_BYTES);
  const controls = head.reduce((sum, byte) => sum + (isControl(byte) ? 1 : 0), 0);
  if (head.includes(0) || controls > head.length / 100) return { kind: "binary" };
  const lossy = new TextDecoder().decode(bytes);
  const broken = lossy.match(/\uFFFD/g)?.length ?? 0;
  // oxlint-disable-next-line no-control-regex
  const whole = lossy.replace(/[\u0000-\u007f\uFFFD]/g, "").length;
  // UTF-8 with a few broken characters is no other encoding.
  const guess = broken * 4 <= whole ? undefined : guessEncoding(head, (label) => decode(label) !== undefined);
  const text = guess === undefined ? undefined : decode(guess.label);
  return guess === undefined || text === undefined
    ? { kind: "guessed", text: lossy, name: undefined, label: undefined }
    : { kind: "guessed", text, ...guess };
}

interface Encoding {
  readonly name: string;
  /** As decoders know it. */
  readonly label: string;
}

interface Candidate extends Encoding {
  /** How many of the characters that are not ASCII are common ones, 0 to 1. */
  readonly score: (bytes: Uint8Array) => number;
}

const within = (byte: number, least: number, most: number): boolean => byte >= least && byte <= most;

/** @param common whether two bytes are a frequent character; `alone`: whether a byte is a character by itself */
function pairs(common: (lead: number, trail: number) => boolean, alone = (_byte: number): boolean => false) {
  return (bytes: Uint8Array): number => {
    let all = 0;
    let fit = 0;
    for (let at = 0; at < bytes.length; at += 1) {
      const lead = bytes[at] ?? 0;
      if (lead < 0x80) continue;
      all += 1;
      if (alone(lead)) continue;
      at += 1;
      if (common(lead, bytes[at] ?? 0)) fit += 1;
    }
    return all === 0 ? 0 : fit / all;
  };
}

/** @param common whether a byte is a frequent character, in a run of so many bytes beyond ASCII, at that place in it */
function runs(common: (byte: number, length: number, index: number) => boolean) {
  return (bytes: Uint8Array): number => {
    let all = 0;
    let fit = 0;
    for (let at = 0; at < bytes.length; at += 1) {
      let length = 0;
      while ((bytes[at + length] ?? 0) >= 0x80) length += 1;
      for (let index = 0; index < length; index += 1)
        if (common(bytes[at + index] ?? 0, length, index)) fit += 1;
      all += length;
      at += length;
    }
    return all === 0 ? 0 : fit / all;
  };
}

const high = (trail: number): boolean => within(trail, 0xa1, 0xfe);

function koreanScore(bytes: Uint8Array): number {
  const pairsOfBytes = bytes.filter((byte) => byte >= 0x80).length / 2;
  // So few characters are as likely Chinese ones of the same bytes.
  return pairsOfBytes < 5 ? 0 : pairs((lead, trail) => within(lead, 0xb0, 0xc8) && high(trail))(bytes);
}

function eucJapaneseScore(bytes: Uint8Array): number {
  const kana = pairs((lead, trail) => within(lead, 0xa4, 0xa5) && high(trail))(bytes);
  const all = pairs(
    (lead, trail) => (within(lead, 0xa4, 0xa5) || lead === 0xa1 || within(lead, 0xb0, 0xcf)) && high(trail),
  );
  return kana < 0.2 ? 0 : all(bytes);
}

/** Where two fit equally well, the first is taken. Ranges: the levels of frequent characters in each standard. */
const CANDIDATES: readonly Candidate[] = [
  { name: "EUC-KR", label: "euc-kr", score: koreanScore },
  {
    name: "Shift-JIS",
    label: "shift_jis",
    score: pairs(
      (lead, trail) =>
        (lead === 0x82 && within(trail, 0x4f, 0xf1)) ||
        (lead === 0x83 && within(trail, 0x40, 0x96)) ||
        (lead === 0x81 && within(trail, 0x40, 0xac)) ||
        (within(lead, 0x88, 0x98) && trail >= 0x40),
      (byte) => within(byte, 0xa1, 0xdf),
    ),
  },
  { name: "EUC-JP", label: "euc-jp", score: eucJapaneseScore },
  {
    name: "GBK",
    label: "gbk",
    score: pairs((lead, trail) => (within(lead, 0xb0, 0xd7) || within(lead, 0xa1, 0xa3)) && high(trail)),
  },
  {
    name: "Big5",
    label: "big5",
    score: pairs(
      (lead, trail) =>
        within(lead, 0xa1, 0xc6) && lead !== 0xa2 && (within(trail, 0x40, 0x7e) || high(trail)),
    ),
  },
  { name: "Latin-1", label: "windows-1252", score: runs((_byte, length) => length <= 2) },
  {
    name: "windows-1251",
    label: "windows-1251",
    score: runs((byte, length, index) => length > 0 && (byte >= 0xe0 || (index === 0 && byte >= 0xc0))),
  },
  {
    name: "KOI8-R",
    label: "koi8-r",
    score: runs(
      (byte, length, index) => length > 0 && (within(byte, 0xc0, 0xdf) || (index === 0 && byte >= 0xe0)),
    ),
  },
];

/** Below this, no guess is better than this one. */
const LEAST_SCORE = 0.6;

/** @param decodes whether the whole text can be read so; undefined: nothing fits */
function guessEncoding(bytes: Uint8Array, decodes: (label: string) => boolean): Encoding | undefined {
  let best: (Encoding & { readonly points: number }) | undefined;
  for (const { name, label, score } of CANDIDATES) {
    const points = score(bytes);
    if (points >= LEAST_SCORE && points > (best?.points ?? 0) && decodes(label))
      best = { name, label, points };
  }
  return best === undefined ? undefined : { name: best.name, label: best.label };
}
