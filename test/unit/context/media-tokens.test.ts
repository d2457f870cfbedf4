/** Tokens of pictures and PDFs, checked against the examples of the providers' own guides. */
import { describe, expect, it } from "vitest";
import { mediaTokens } from "../../../activities/text/tokens.ts";

const input = ["text" as const, "image" as const, "pdf" as const];
const picture = (width?: number, height?: number) => ({
  type: "file" as const,
  mediaType: "image/png",
  data: "@blob:0",
  ...(width === undefined || height === undefined ? {} : { width, height }),
});
const pdf = (pages?: number) => ({
  type: "file" as const,
  mediaType: "application/pdf",
  data: "@blob:0",
  pages,
});

describe("tokens of a picture", () => {
  it.each([
    // OpenAI, "Images and vision": tiles, patches; gpt-5-mini as its calculator and measured bills have it.
    ["openai/gpt-4o", 1_024, 1_024, 765],
    ["openai/gpt-4o", 2_048, 4_096, 1_105],
    ["openai/gpt-4.1", 2_050, 513, 85 + 4 * 170],
    ["openai/gpt-5", 1_024, 1_024, 630],
    ["openai/o3", 512, 512, 225],
    ["openai/gpt-4.1-mini", 1_024, 1_024, Math.ceil(1_024 * 1.62)],
    ["openai/gpt-4.1-mini", 1_800, 2_400, Math.ceil(1_452 * 1.62)],
    ["openai/gpt-5-mini", 1_280, 720, 1_104],
    ["openai/gpt-5-mini", 2_048, 768, 1_844],
    ["openai/gpt-5.6-sol", 1_024, 1_024, 1_024],
    // Anthropic, "Vision": 54, 1,334 and 1,590 tokens; what is larger is shrunk.
    ["anthropic/claude-sonnet-4-5", 200, 200, 54],
    ["anthropic/claude-sonnet-4-5", 1_000, 1_000, 1_334],
    ["anthropic/claude-sonnet-4-5", 1_092, 1_092, 1_590],
    ["anthropic/claude-sonnet-4-5", 4_000, 4_000, 1_600],
    ["anthropic/claude-opus-5", 2_576, 2_576, 4_784],
    // Google, "Image understanding": 258 up to 384 pixels, 960 × 540 in six crops; Gemini 3 at its default resolution.
    ["google/gemini-2.5-flash", 384, 384, 258],
    ["google/gemini-2.5-flash", 960, 540, 6 * 258],
    ["google/gemini-3.8-flash", 4_000, 3_000, 1_120],
    ["openrouter/google/gemini-2.5-pro", 300, 300, 258],
    ["ollama/qwen3-vl", 750, 100, 100],
  ])("%s sees %d × %d pixels for %d", (model, width, height, tokens) => {
    expect(mediaTokens(picture(width, height), { model, input })).toBe(tokens);
  });

  // The same guide: at low detail the base of its tiles, or 512 × 512 pixels; `original` is not shrunk up to 10,000 patches.
  it.each([
    ["openai/gpt-4o", "low", 2_048, 2_048, 85],
    ["openai/gpt-5.6-sol", "low", 1_024, 1_024, 256],
    ["openai/gpt-5.6-sol", "high", 3_200, 3_200, 2_500],
    ["openai/gpt-5.6-sol", "original", 3_200, 3_200, 10_000],
    ["anthropic/claude-opus-5", "low", 2_576, 2_576, 4_784],
  ] as const)("%s sees at %s detail %d × %d pixels for %d", (model, imageDetail, width, height, tokens) => {
    expect(mediaTokens(picture(width, height), { model, input, imageDetail })).toBe(tokens);
  });

  it("is a guess if the size is unknown, and one line of text if the model accepts no pictures", () => {
    expect(mediaTokens(picture(), { model: "openai/gpt-4o", input })).toBe(1_500);
    expect(mediaTokens(picture(4_000, 4_000), { model: "openai/gpt-4o", input: ["text"] })).toBe(30);
  });
});

it.each([
  ["anthropic/claude-opus-5", 10, 23_000],
  ["google/gemini-3.8-flash", 10, 5_600],
  ["google/gemini-2.5-flash", 10, 2_580],
  ["acme/coder", undefined, 2_000],
])("tokens of a PDF are those of its pages: %s, %s", (model, pages, tokens) => {
  expect(mediaTokens(pdf(pages), { model, input })).toBe(tokens);
});
