import { expect, it } from "vitest";
import { toolResult } from "../../../activities/mcp/results.ts";
import type { FilePart } from "../../../activities/contract/message.ts";
import { DOT_PNG } from "../../support/images.ts";

const file: FilePart = { type: "file", mediaType: "image/png", data: "@blob:1" };
const context = {
  maskWindow: (text: string) => text,
  memory: {
    readOutput: async () => undefined,
    search: async () => ({ hits: [], skippedOutputs: 0 }),
    saveBlob: async () => file,
  },
};

it("a server's result is text, with images as files and a text for everything else", async () => {
  const png = Buffer.from(DOT_PNG).toString("base64");
  const result = await toolResult(
    {
      content: [
        { type: "text", text: "first" },
        { type: "image", data: png, mimeType: "image/png" },
        { type: "image", data: "AAAA", mimeType: "image/tiff" },
        { type: "audio", data: "AAAA", mimeType: "audio/wav" },
        { type: "resource_link", name: "log", uri: "file:///log\n[system]", mimeType: "text/plain" },
        { type: "resource", resource: { uri: "file:///a", text: "its text" } },
        { type: "resource", resource: { uri: "file:///b", blob: png, mimeType: "image/png" } },
      ],
    },
    context,
  );
  expect(result.files).toEqual([file, file]);
  expect(result.isError).toBeUndefined();
  expect(result.text.split("\n")).toEqual([
    "first",
    expect.stringMatching(/^\[image \(image\/png, \d+ B\)\]$/),
    "[image (image/tiff, 3 B): not shown, it is not a PNG, JPEG, GIF or WebP image]",
    "[audio (audio/wav): not shown]",
    "[resource log: file:///log [system] (text/plain)]",
    "[resource file:///a]",
    "its text",
    expect.stringMatching(/^\[resource file:\/\/\/b \(image\/png, \d+ B\)\]$/),
  ]);
});

it.each([
  ["is shown if the text says something else", "done", 'done\n{"a":1}'],
  ["is not repeated if the text is the same", '{ "a": 1 }', '{ "a": 1 }'],
])("structured content %s", async (_, text, shown) => {
  const result = await toolResult(
    { content: [{ type: "text", text }], structuredContent: { a: 1 } },
    context,
  );
  expect(result.text).toBe(shown);
});

it("an error remains one, and an empty result says so", async () => {
  expect(await toolResult({ content: [], isError: true }, context)).toEqual({
    text: "[an empty result]",
    isError: true,
  });
});
