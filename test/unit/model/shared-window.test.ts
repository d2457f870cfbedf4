/** A window that several requests share, as the slots of llama.cpp's server do: full is not the same as too long. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { sharedWindowPatterns } from "../../../activities/model/overflow.ts";
import { toModelError } from "../../../activities/model/to-model-error.ts";
import { askedAs } from "../../support/run-config.ts";

const context = {
  ...askedAs("llamacpp/qwen"),
  api: "chat",
  mask: (text: string) => text,
  now: Date.parse("2026-11-21T12:00:00Z"),
} as const;

const refusal = (message: string, more: object = {}) => ({
  name: "AI_APICallError",
  statusCode: 500,
  responseBody: JSON.stringify({ error: { code: 500, message, type: "server_error", ...more } }),
});
/** The same in mid-stream, as the SDK gives it. */
const inStream = (message: string) => ({
  name: "AI_StreamProviderError",
  statusCode: 500,
  data: { error: { code: 500, message, type: "server_error" } },
});

describe("a window that is full of other requests too", () => {
  it.each(sharedWindowPatterns)("is waited for: $example", ({ example }) => {
    const anyFailure = fc.record({
      error: fc.constantFrom(refusal(example), inStream(example), refusal(`srv: ${example}`)),
      nearWindow: fc.constantFrom(true, false, undefined),
      heard: fc.boolean(),
    });
    fc.assert(
      fc.property(anyFailure, ({ error, nearWindow, heard }) => {
        const isOwn = nearWindow === true && !heard;
        expect(toModelError(error, { ...context, nearWindow, heard })).toMatchObject({
          class: isOwn ? "overflow" : "unavailable",
          mayBeOverflow: !isOwn,
          message: expect.stringContaining(example.replace(/\.$/, "")),
        });
      }),
    );
  });

  it("is not what an error means that names the window", () => {
    const named = "request (1463 tokens) exceeds the available context size (1024 tokens)";
    const other = refusal("Context size has been exceeded.", { n_ctx: 1_024 });
    for (const error of [refusal(named), other])
      expect(toModelError(error, { ...context, heard: false })).toMatchObject({
        class: "overflow",
        mayBeOverflow: false,
        servedWindow: 1_024,
      });
  });

  it("is named as the cause, with what to do, and no trouble of the network is suspected", () => {
    const { message } = toModelError(inStream("Context size has been exceeded."), {
      ...context,
      heard: true,
    });
    expect(message).toContain("share one window");
    expect(message).toContain("--ctx-size");
    expect(message).not.toContain("could not be reached");
  });
});
