/**
 * How many tokens a text, a picture or a PDF takes. Texts go through an approximate tokenizer:
 * it splits them as o200k's splitter does (words with the sign before them, groups of three digits, runs of signs, runs of blanks)
 * and estimates each piece by its kind and length. No token tables, no allocation.
 *
 * Source of the estimates: mean tokens per piece of o200k_base over prose, source code, JSON, tool output and six
 * languages. The unit test checks the total against requirement 9's bounds.
 */

const LETTER = 1;
const UPPER = 2;
const DIGIT = 3;
const SPACE = 4;
const NEWLINE = 5;
const SIGN = 6;

const ASCII = Uint8Array.from({ length: 128 }, (_, code) => {
  if (code === 10 || code === 13) return NEWLINE;
  if (code === 32 || (code >= 9 && code <= 12)) return SPACE;
  if (code >= 48 && code <= 57) return DIGIT;
  if (code >= 65 && code <= 90) return UPPER;
  if (code >= 97 && code <= 122) return LETTER;
  return SIGN;
});

/** Tokens of a word by its length: after a space, after another sign, or attached to the text before it. */
const AFTER_SPACE = [0, 1, 1, 1, 1, 1.03, 1.01, 1.03, 1.05, 1.1, 1.2, 1.2, 1.25, 1.3, 1.35, 1.5];
const AFTER_SIGN = [0, 1, 1.3, 1.12, 1.25, 1.15, 1.2, 1.22, 1.5, 1.75, 1.9, 2, 2.3, 2.4, 2.6, 2.8];
const GLUED = [0, 1, 1.12, 1.3, 1.16, 1.24, 1.14, 1.25, 1.29, 1.6, 1.7, 1.6, 1.6, 2, 2.6, 3];
const CAPITALS = [0, 1, 1.05, 1.35, 1.6, 1.7, 1.9, 2.1, 2.5, 2.5];
const SIGNS = [0, 1, 1, 1.17, 1.76, 1.8, 2.1, 2.5];

/** Estimated tokens of a text, unrounded. Linear: some 150 MB/s. */
function sketchTokens(text: string): number {
  const length = text.length;
  let tokens = 0;
  let at = 0;
  // Kind of the single character that the next word takes along: none, a space or one sign.
  let lead = GLUED;
  while (at < length) {
    const code = text.charCodeAt(at);
    if (code >= 128) {
      const end = foreignEnd(text, at, code);
      tokens += foreignTokens(code, end - at, lead !== GLUED);
      lead = GLUED;
      at = end;
      continue;
    }
    const start = at;
    const kind = ASCII[code];
    if (kind === LETTER || kind === UPPER) {
      at = wordEnd(text, at, kind);
      tokens += wordTokens(text, start, at, lead);
      lead = GLUED;
    } else if (kind === DIGIT) {
      at = runEnd(text, at, DIGIT);
      tokens += Math.ceil((at - start) / 3) + (lead === GLUED ? 0 : 1);
      lead = GLUED;
    } else if (kind === SPACE) {
      at = runEnd(text, at, SPACE);
      const next = at < length ? ASCII[text.charCodeAt(at)] : NEWLINE;
      // Blanks before a line end belong to it; otherwise the last blank belongs to the next piece.
      if (next === NEWLINE) continue;
      if (at - start > 1) tokens += 1 + (at - start) / 120;
      lead = AFTER_SPACE;
    } else if (kind === NEWLINE) {
      at = runEnd(text, at, NEWLINE);
      tokens += 1;
      lead = GLUED;
    } else {
      let changes = 1;
      for (at++; at < length && ASCII[text.charCodeAt(at)] === SIGN; at++) {
        if (text.charCodeAt(at) !== text.charCodeAt(at - 1)) changes++;
      }
      const next = at < length ? ASCII[text.charCodeAt(at)] : 0;
      if (at - start === 1 && lead !== AFTER_SPACE && (next === LETTER || next === UPPER)) {
        lead = AFTER_SIGN;
        continue;
      }
      tokens += signTokens(at - start, changes);
      at = runEnd(text, at, NEWLINE);
      lead = GLUED;
    }
  }
  return tokens;
}

/** Where the run of characters of one kind that starts at `start` ends. Reading past the text's end would halve the speed. */
function runEnd(text: string, start: number, kind: number): number {
  let at = start;
  while (at < text.length && ASCII[text.charCodeAt(at)] === kind) at++;
  return at;
}

/** End of a word: capitals and then small letters, or capitals alone; `fooBar` is two words. */
function wordEnd(text: string, start: number, kind: number): number {
  return runEnd(text, kind === UPPER ? runEnd(text, start, UPPER) : start, LETTER);
}

function wordTokens(text: string, start: number, end: number, lead: readonly number[]): number {
  const length = end - start;
  if (length > 1 && ASCII[text.charCodeAt(end - 1)] === UPPER) {
    return (CAPITALS[length] ?? length * 0.4) + (lead === AFTER_SIGN ? 0.3 : 0);
  }
  const price = lead[length] ?? length * 0.33;
  // Random letters (hashes, base64) are tokenized in pairs.
  return length >= 6 && !isPronounceable(text, start, end) ? Math.max(price, length * 0.5) : price;
}

function isPronounceable(text: string, start: number, end: number): boolean {
  let vowels = 0;
  for (let at = start; at < end; at++) {
    const code = text.charCodeAt(at) | 32;
    if (code === 97 || code === 101 || code === 105 || code === 111 || code === 117 || code === 121) vowels++;
  }
  return vowels * 6 >= end - start;
}

function signTokens(length: number, changes: number): number {
  // `=====` is one token up to some 60 signs; `});` is estimated by its length.
  if (changes === 1) return 1 + length / 80;
  return SIGNS[changes] ?? changes * 0.4;
}

const LATIN = 1;
const CYRILLIC = 2;
const HAN = 3;
const KANA = 4;
const HANGUL = 5;
const OTHER_LETTER = 6;
const CJK_SIGN = 7;
const SYMBOL = 8;
const PAIR = 9;

function foreignKind(code: number): number {
  if (code < 0x00c0) return SYMBOL;
  if (code < 0x0370) return LATIN;
  if (code < 0x0530) return CYRILLIC;
  if (code < 0x1e00) return OTHER_LETTER;
  if (code < 0x2000) return LATIN;
  if (code < 0x2e80) return SYMBOL;
  if (code < 0x3040) return CJK_SIGN;
  if (code < 0x3100) return KANA;
  if (code < 0xa000) return HAN;
  if (code >= 0xac00 && code < 0xd7b0) return HANGUL;
  if (code >= 0xd800 && code < 0xe000) return PAIR;
  if (code >= 0xff00) return CJK_SIGN;
  return OTHER_LETTER;
}

function foreignEnd(text: string, start: number, first: number): number {
  const kind = foreignKind(first);
  let at = start + 1;
  for (; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code < 128 || foreignKind(code) !== kind) break;
  }
  return at;
}

function foreignTokens(first: number, length: number, afterBlank: boolean): number {
  switch (foreignKind(first)) {
    case LATIN:
      return 0.35 + length * 0.35;
    case CYRILLIC:
      return length < 4 ? 1 : 1 + (length - 3) * 0.25;
    case HAN:
      return 0.15 + length * 0.69;
    case KANA:
      return 0.2 + length * 0.68;
    case HANGUL:
      return 0.2 + length * 0.62;
    case CJK_SIGN:
      return length;
    case SYMBOL:
      return (afterBlank ? 1 : 0.9) + (length - 1) * 0.6;
    case PAIR:
      return length * 1.05;
    default:
      return 0.4 + length * 0.4;
  }
}

/** Tokens of a text: −3…+3 % on prose, code and Chinese, −15 % on tool output (measured against o200k). */
export function estimateText(text: string): number {
  return text === "" ? 0 : Math.max(1, Math.round(sketchTokens(text)));
}

/** The model whose rule applies, and whether it sees files at all. */
export interface Viewer {
  readonly model: string;
  /** The provider's name for the model, if different. */
  readonly modelName?: string | undefined;
  readonly input: readonly ("text" | "image" | "pdf")[];
  readonly imageDetail?: "low" | "high" | "original" | undefined;
}

/** A provider's rule for a picture of this many pixels. */
type ImageRule =
  /** By area, after shrinking to `maxEdge` and `maxTokens`. */
  | {
      readonly by: "area";
      readonly pixelsPerToken: number;
      readonly maxEdge: number;
      readonly maxTokens: number;
    }
  /** Patches of 32 pixels, after shrinking to `maxPatches`; each counts `factor` tokens. */
  | { readonly by: "patches"; readonly maxPatches: number; readonly factor: number }
  /** Tiles of 512 pixels, after shrinking to 2,048 × 2,048 and the short side to 768. */
  | { readonly by: "tiles"; readonly base: number; readonly tile: number }
  /** Crops of 256 to 768 pixels. */
  | { readonly by: "crops"; readonly crop: number }
  | { readonly by: "count"; readonly tokens: number };

interface MediaRule {
  /** Matches the model's name without its provider. */
  readonly models: RegExp;
  readonly image: ImageRule;
  readonly pdfPage: number;
}

/**
 * The first match applies. Sources: OpenAI's guide to images and vision, and for gpt-5-mini and -nano its pricing
 * calculator and measured usage, which differ from the guide; Anthropic's guide to vision, high resolution from 4.7
 * on; Google's guides to image understanding and media resolution. Pages: Anthropic measured at 2,100 to 2,350
 * (public data set of 2026-10); OpenAI some 500 tokens of text and a picture of the page. Unless a person sets
 * another detail we ask OpenAI for `detail: auto`, which is billed as high.
 */
const RULES: readonly MediaRule[] = [
  { models: /gemini-([3-9]|\d\d)/, image: { by: "count", tokens: 1_120 }, pdfPage: 560 },
  { models: /gemini/, image: { by: "crops", crop: 258 }, pdfPage: 258 },
  {
    models: /claude-[a-z]+-(4-[7-9]|[5-9])/,
    image: { by: "area", pixelsPerToken: 750, maxEdge: 2_576, maxTokens: 4_784 },
    pdfPage: 2_300,
  },
  {
    models: /claude/,
    image: { by: "area", pixelsPerToken: 750, maxEdge: 1_568, maxTokens: 1_600 },
    pdfPage: 2_300,
  },
  { models: /gpt-5-mini/, image: { by: "patches", maxPatches: 1_536, factor: 1.2 }, pdfPage: 1_500 },
  { models: /gpt-5-nano/, image: { by: "patches", maxPatches: 1_536, factor: 1.5 }, pdfPage: 1_700 },
  {
    models: /gpt-(4\.1|5\.\d)-mini/,
    image: { by: "patches", maxPatches: 1_536, factor: 1.62 },
    pdfPage: 1_800,
  },
  {
    models: /gpt-(4\.1|5\.\d)-nano/,
    image: { by: "patches", maxPatches: 1_536, factor: 2.46 },
    pdfPage: 2_400,
  },
  { models: /o4-mini/, image: { by: "patches", maxPatches: 1_536, factor: 1.72 }, pdfPage: 1_900 },
  {
    models: /gpt-(5\.[4-9]|[6-9])/,
    image: { by: "patches", maxPatches: 2_500, factor: 1 },
    pdfPage: 1_300,
  },
  { models: /gpt-5\.[23]/, image: { by: "patches", maxPatches: 1_536, factor: 1.2 }, pdfPage: 1_500 },
  { models: /gpt-5/, image: { by: "tiles", base: 70, tile: 140 }, pdfPage: 1_100 },
  { models: /(^|\/)o[13]/, image: { by: "tiles", base: 75, tile: 150 }, pdfPage: 1_200 },
  { models: /gpt-4o-mini/, image: { by: "tiles", base: 2_833, tile: 5_667 }, pdfPage: 26_000 },
  { models: /gpt-4/, image: { by: "tiles", base: 85, tile: 170 }, pdfPage: 1_300 },
];

/** For models that no guide covers. Source: most count patches of 28 pixels; Anthropic's rule is within a tenth of that. */
const OTHER: Omit<MediaRule, "models"> = {
  image: { by: "area", pixelsPerToken: 750, maxEdge: 1_568, maxTokens: 1_600 },
  pdfPage: 2_000,
};

/** For a picture whose bytes do not show its size. Source: OpenCode. */
const UNKNOWN_SIZE_TOKENS = 1_500;

/** For the text that replaces a file that the model does not accept. */
const NOT_SHOWN_TOKENS = 30;

/** What of a picture or a PDF determines its tokens; sizes are absent if the bytes do not show them. */
interface Medium {
  readonly mediaType: string;
  /** Pixels. */
  readonly width?: number;
  readonly height?: number;
  readonly pages?: number;
}

/** @param viewer the model that sees the file; undefined: any */
export function mediaTokens(file: Medium, viewer?: Viewer): number {
  const name = viewer === undefined ? "" : (viewer.modelName ?? viewer.model);
  const rule = RULES.find(({ models }) => models.test(name)) ?? OTHER;
  const isImage = file.mediaType.startsWith("image/");
  if (viewer !== undefined && !viewer.input.includes(isImage ? "image" : "pdf")) return NOT_SHOWN_TOKENS;
  if (!isImage) return rule.pdfPage * (file.pages ?? 1);
  const { width, height } = file;
  const image = atDetail(rule.image, viewer?.imageDetail);
  if (image.by === "count") return image.tokens;
  return width === undefined || height === undefined
    ? UNKNOWN_SIZE_TOKENS
    : imageTokens(image, width, height);
}

/** Most patches of a picture that is not shrunk. Source: OpenAI's guide to images and vision, gpt-5.4 and later. */
const ORIGINAL_PATCHES = 10_000;
/** Patches of 512 × 512 pixels, which is what a model sees at low detail. Source: the same. */
const LOW_PATCHES = 256;

/** OpenAI's rules for a detail other than `auto`. */
function atDetail(rule: ImageRule, detail: Viewer["imageDetail"]): ImageRule {
  if (detail === "low" && rule.by === "tiles") return { by: "count", tokens: rule.base };
  if (detail === "low" && rule.by === "patches") return { ...rule, maxPatches: LOW_PATCHES };
  if (detail === "original" && rule.by === "patches") return { ...rule, maxPatches: ORIGINAL_PATCHES };
  return rule;
}

function imageTokens(rule: ImageRule, width: number, height: number): number {
  switch (rule.by) {
    case "count":
      return rule.tokens;
    case "area": {
      const scale = Math.min(1, rule.maxEdge / Math.max(width, height));
      return Math.min(rule.maxTokens, Math.ceil((width * scale * height * scale) / rule.pixelsPerToken));
    }
    case "patches":
      return Math.ceil(patches(width, height, rule.maxPatches) * rule.factor);
    case "tiles": {
      const fit = Math.min(1, 2_048 / Math.max(width, height));
      const scale = fit * Math.min(1, 768 / (Math.min(width, height) * fit));
      return (
        rule.base + rule.tile * cover(Math.round(width * scale), 512) * cover(Math.round(height * scale), 512)
      );
    }
    case "crops": {
      if (Math.max(width, height) <= 384) return rule.crop;
      const unit = Math.min(768, Math.max(256, Math.floor(Math.min(width, height) / 1.5)));
      return rule.crop * cover(width, unit) * cover(height, unit);
    }
  }
}

/** Number of patches that cover the picture; beyond `most` it is shrunk to a whole number of patches in width. */
function patches(width: number, height: number, most: number): number {
  const whole = cover(width, 32) * cover(height, 32);
  if (whole <= most) return whole;
  const shrink = Math.sqrt((most * 32 * 32) / (width * height));
  const [across, down] = [(width * shrink) / 32, (height * shrink) / 32];
  const fit = Math.min(Math.floor(across) / across, Math.floor(down) / down);
  return Math.min(most, Math.ceil(across * fit - EPSILON) * Math.ceil(down * fit - EPSILON));
}

/** Less than any pixel: keeps rounding errors from pushing a quotient at a boundary past it. */
const EPSILON = 1e-6;

function cover(pixels: number, side: number): number {
  return Math.ceil(pixels / side - EPSILON);
}
