/** Tokens of a picture or a PDF by model: data from the providers' guides. Pure. */
import type { FilePart } from "./message.ts";

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

/** For a picture of unknown size, such as one stored before sizes were recorded. Source: OpenCode. */
const UNKNOWN_SIZE_TOKENS = 1_500;

/** For the text that replaces a file that the model does not accept. */
const NOT_SHOWN_TOKENS = 30;

/** @param viewer the model that sees the file; undefined: any */
export function mediaTokens(file: FilePart, viewer?: Viewer): number {
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
