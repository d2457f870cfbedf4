import { expect, it } from "vitest";
import { createSanitizer } from "../../../activities/redaction/sanitizer.ts";
import { StreamedCall } from "../../../activities/step/chunk-writer.ts";

const SECRET = "sk-live-0123456789abcdef0123456789abcdef";

function announced(pieces: readonly string[], secrets: readonly string[] = []) {
  const call = new StreamedCall("write_file", createSanitizer(secrets));
  const chunks = [...pieces.flatMap((piece) => call.push(piece)), ...call.end()];
  return {
    names: chunks.filter(({ chunkType }) => chunkType === "tool-name").map(({ text }) => text),
    input: chunks
      .filter(({ chunkType }) => chunkType === "tool-input")
      .map(({ text }) => text)
      .join(""),
  };
}

it("announces a long call while it is being written, its name once and first", () => {
  const pieces = Array.from({ length: 30 }, (_, place) => `line ${place} of the file, `.repeat(3));
  expect(announced(pieces)).toEqual({ names: ["write_file"], input: pieces.join("") });
});

it("announces no short one, which arrives at once", () => {
  expect(announced(['{"path": "a.txt"}'])).toEqual({ names: [], input: "" });
});

it("masks a secret that comes in pieces", () => {
  const { input } = announced(["x".repeat(500), SECRET.slice(0, 9), SECRET.slice(9), " end"], [SECRET]);
  expect(input).not.toContain(SECRET);
  expect(input).toMatch(/ end$/);
});
