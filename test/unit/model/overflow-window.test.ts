/** The window that an overflow's words name: the session compacts to it. */
import fc from "fast-check";
import { expect, it } from "vitest";
import { overflowPatterns, windowInText } from "../../../activities/model/overflow.ts";
import { toModelError } from "../../../activities/model/to-model-error.ts";
import { askedAs } from "../../support/run-config.ts";

const LLAMA = "request (1463 tokens) exceeds the available context size (1024 tokens), try increasing it";

const windows: readonly (readonly [string, string])[] = [
  [LLAMA, "1024"],
  ["prompt is too long: 213462 tokens > 200000 maximum", "200000"],
  ["Input length (41000) exceeds model's maximum context length (32768).", "32768"],
  ["Requested tokens (5120) exceed context window of 4096", "4096"],
  ["The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).", "1048575"],
  ["This model's maximum prompt length is 131072 but the request contains 537812 tokens.", "131072"],
  [
    "This model's maximum context length is 128000 tokens. However, your messages resulted in 140213 tokens.",
    "128000",
  ],
  ["prompt token count of 151201 exceeds the limit of 128000", "128000"],
  ["Invalid request: Your request exceeded model token limit: 131072", "131072"],
  ["Prompt contains 40960 tokens, too large for model with 32768 maximum context length", "32768"],
  ["The decoder prompt (length 40960) is longer than the maximum model length of 32768.", "32768"],
  [
    "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 280016 tokens.",
    "272000",
  ],
  ["The input (210000 tokens) exceeds the maximum allowed input length of 202752 tokens.", "202752"],
  [
    "Trying to keep the first 14538 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough.",
    "4096",
  ],
  ["Range of input length should be [1, 98304]", "98304"],
  ["total number of tokens in the prompt cannot exceed 4081 - received 4292.", "4081"],
  [
    "`inputs` tokens + `max_new_tokens` must be <= 8192. Given: 8100 `inputs` tokens and 512 `max_new_tokens`",
    "8192",
  ],
  [
    "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or `max_tokens` and try again",
    "200000",
  ],
];

it.each(windows)("is read, whatever its number is: %s", (text, window) => {
  expect(windowInText(text)).toBe(Number(window));
  fc.assert(
    fc.property(fc.integer({ min: 500, max: 4_000 }), (tokens) => {
      expect(windowInText(text.replace(window, String(tokens)))).toBe(tokens);
      expect(windowInText(text.replace(window, tokens.toLocaleString("en")))).toBe(tokens);
    }),
    { numRuns: 30 },
  );
});

it("is not read from a request's size, bytes, a number of messages or a minute's allowance", () => {
  const named = new Set(windows.map(([text]) => text));
  const others = overflowPatterns.filter(({ example }) => !named.has(example));
  const read = others.flatMap(({ example }) => windowInText(example) ?? []);
  // LM Studio's second text, and Qwen's and Cohere's whole ones.
  expect(read).toEqual([4_096, 98_304, 4_081]);
  expect(windowInText("Input length (41000) is greater than the context length")).toBeUndefined();
});

it("is taken from the field in which llama.cpp gives it, and quoted", () => {
  const body = {
    error: {
      code: 400,
      message: "the request exceeds the available context size. try increasing it",
      type: "exceed_context_size_error",
      n_prompt_tokens: 1463,
      n_ctx: 1024,
    },
  };
  const thrown = Object.assign(new Error(body.error.message), {
    name: "AI_APICallError",
    statusCode: 400,
    responseBody: JSON.stringify(body),
  });
  const context = { ...askedAs("llamacpp/qwen"), api: "chat", mask: (text: string) => text, now: 0 } as const;
  const error = toModelError(thrown, context);
  expect(error).toMatchObject({ class: "overflow", servedWindow: 1024 });
  expect(error.message).toContain("exceeds the available context size");
});
