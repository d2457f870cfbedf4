import { describe, expect, it } from "vitest";
import { DOT_PNG } from "../../support/images.ts";
import { perTest } from "../../support/per-file.ts";
import { startScriptedModel, text, thought } from "../../support/scripted-model.ts";

const server = perTest(() =>
  startScriptedModel({ parts: [{ type: "text", text: "ok" }] }, { dialect: "openai" }),
);

type Body = Record<string, unknown>;

async function post(path: string, body: Body): Promise<string> {
  const response = await fetch(`${server.baseUrl}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: "Bearer sk-test" },
    body: JSON.stringify(body),
  });
  const answer = (await response.json()) as { error?: { message: string } | null };
  return response.status === 200 ? "taken" : `${response.status} ${answer.error?.message}`;
}

const responses = (more: Body) =>
  post("/responses", { model: "o3", store: false, input: [{ role: "user", content: "go" }], ...more });
const chat = (more: Body) =>
  post("/chat/completions", { model: "o3", messages: [{ role: "user", content: "go" }], ...more });

const schema = {
  type: "object",
  properties: { path: { type: "string" }, mode: { type: "string" } },
  required: ["path"],
  additionalProperties: false,
};
const png = `data:image/png;base64,${DOT_PNG.toString("base64")}`;
const image = (image_url: string, more: Body = {}) => ({
  input: [{ role: "user", content: [{ type: "input_image", image_url, detail: "auto", ...more }] }],
});
const chatImage = (url: string, more: Body = {}) => ({
  messages: [{ role: "user", content: [{ type: "image_url", image_url: { url, ...more } }] }],
});

it.each<[string, Body]>([
  ["reasoning with effort and summary", { reasoning: { effort: "low", summary: "auto" } }],
  ["verbosity", { text: { verbosity: "low" } }],
  ["a cache key of 64 characters", { prompt_cache_key: "k".repeat(64) }],
  ["a real image", image(png)],
  ["temperature for a model that does not reason", { model: "gpt-4o", temperature: 0 }],
  [
    "no tools at wrap-up",
    { tools: [{ type: "function", name: "run", parameters: schema }], tool_choice: "none" },
  ],
])("the strict server accepts on the Responses wire %s", async (_, more) => {
  expect(await responses(more)).toBe("taken");
});

it.each<[string, Body, string]>([
  ["an unknown parameter", { max_tokens: 100 }, "Unknown parameter: 'max_tokens'."],
  ["one within another", { reasoning: { budget: 1 } }, "Unknown parameter: 'reasoning.budget'."],
  [
    "chat's stream option",
    { stream: true, stream_options: { include_usage: true } },
    "Unknown parameter: 'stream_options.include_usage'.",
  ],
  [
    "an unknown field of an item",
    { input: [{ role: "user", content: "go", reasoning_content: "x" }] },
    "Unknown parameter: 'input[0].reasoning_content'.",
  ],
  [
    "an unknown field of a part",
    { input: [{ role: "user", content: [{ type: "input_text", text: "x", cache_control: {} }] }] },
    "Unknown parameter: 'input[0].content[0].cache_control'.",
  ],
  ["temperature for a reasoning model", { temperature: 0 }, "'temperature' is not supported"],
  ["top_p for a reasoning model", { top_p: 0.5 }, "'top_p' is not supported with this model"],
  [
    "reasoning without it",
    { model: "gpt-4o", reasoning: { effort: "low" } },
    "'reasoning.effort' is not supported",
  ],
  ["an unknown effort", { reasoning: { effort: "extreme" } }, "Invalid value: 'extreme'"],
  ["an unknown summary", { reasoning: { summary: "long" } }, "Invalid value: 'long'"],
  ["an unknown verbosity", { text: { verbosity: "none" } }, "Invalid value: 'none'"],
  ["an unknown tool choice", { tool_choice: "any" }, "Invalid value: 'any'"],
  ["the choice of no tool", { tool_choice: { type: "function", name: "run" } }, "not found in 'tools'"],
  ["an unknown include", { include: ["reasoning"] }, "Invalid value: 'reasoning'"],
  [
    "a cache key of 65 characters",
    { prompt_cache_key: "k".repeat(65) },
    "Expected a string with maximum length 64, but got a string with length 65",
  ],
  [
    "options without a stream",
    { stream_options: { include_obfuscation: false } },
    "when 'stream' is enabled",
  ],
  [
    "a strict schema with an optional property",
    { tools: [{ type: "function", name: "run", strict: true, parameters: schema }] },
    "Missing 'mode'.",
  ],
  [
    "a call whose own id is another provider's",
    {
      input: [
        { type: "function_call", id: "toolu_1", call_id: "a", name: "run", arguments: "{}" },
        { type: "function_call_output", call_id: "a", output: "x" },
      ],
    },
    "Expected an ID that begins with 'fc'",
  ],
  [
    "a person's part in the assistant's message",
    { input: [{ role: "assistant", content: [{ type: "input_text", text: "x" }] }] },
    "Supported values are: 'output_text', and 'refusal'.",
  ],
  [
    "a part of the other wire",
    { input: [{ role: "user", content: [{ type: "text", text: "x" }] }] },
    "Invalid value: 'text'. Supported values are: 'input_text', 'input_image'",
  ],
  ["an image that is none", image("data:image/png;base64,AAAA"), "does not represent a valid image"],
  [
    "an image of another type",
    image(`data:image/tiff;base64,${DOT_PNG.toString("base64")}`),
    "unsupported MIME type 'image/tiff'",
  ],
  [
    "a person's image without its detail",
    image(png, { detail: undefined }),
    "Missing required parameter: 'input[0].content[0].detail'",
  ],
  ["an unknown detail", image(png, { detail: "medium" }), "Invalid value: 'medium'"],
])("the strict server refuses on the Responses wire %s", async (_, more, message) => {
  expect(await responses(more)).toContain(message);
});

it.each<[string, Body, string]>([
  ["an unknown parameter", { reasoning: { effort: "low" } }, "Unknown parameter: 'reasoning'."],
  [
    "reasoning that another server sent",
    {
      messages: [
        { role: "user", content: "go" },
        { role: "assistant", content: "so", reasoning_content: "x" },
        { role: "user", content: "on" },
      ],
    },
    "Unknown parameter: 'messages[1].reasoning_content'.",
  ],
  [
    "a signature that another server sent",
    {
      messages: [
        { role: "user", content: "go" },
        {
          role: "assistant",
          content: null,
          tool_calls: [
            { id: "a", type: "function", function: { name: "run", arguments: "{}" }, extra_content: {} },
          ],
        },
        { role: "tool", tool_call_id: "a", content: "x" },
      ],
    },
    "Unknown parameter: 'messages[1].tool_calls[0].extra_content'.",
  ],
  ["temperature for a reasoning model", { temperature: 0.2 }, "Only the default (1) value is supported"],
  ["max_tokens for a reasoning model", { max_tokens: 100 }, "Use 'max_completion_tokens' instead"],
  ["both limits", { model: "gpt-4o", max_tokens: 100, max_completion_tokens: 100 }, "at the same time"],
  ["effort for no reasoning", { model: "gpt-4o", reasoning_effort: "low" }, "reasoning_effort"],
  ["a tool choice without tools", { tool_choice: "auto" }, "only allowed when 'tools' are specified"],
  ["options without a stream", { stream_options: { include_usage: true } }, "when 'stream' is enabled"],
  [
    "a part of the other wire",
    { messages: [{ role: "user", content: [{ type: "input_text", text: "x" }] }] },
    "Invalid value: 'input_text'. Supported values are: 'text', 'image_url'",
  ],
  ["an image that is none", chatImage("data:image/png;base64,AAAA"), "does not represent a valid image"],
  ["a detail of the other wire", chatImage(png, { detail: "original" }), "Invalid value: 'original'"],
])("the strict server refuses on the chat wire %s", async (_, more, message) => {
  expect(await chat(more)).toContain(message);
});

describe("reasoning on the Responses wire", () => {
  const thinker = perTest(() => startScriptedModel({ parts: [thought("Hmm."), text("ok")] }));
  const ask = async (more: Body): Promise<Body | undefined> => {
    const response = await fetch(`${thinker.baseUrl}/responses`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: "Bearer sk-test" },
      body: JSON.stringify({ model: "o3", store: false, input: [{ role: "user", content: "go" }], ...more }),
    });
    return ((await response.json()) as { output: Body[] }).output[0];
  };

  it("has a summary only on request", async () => {
    expect(await ask({})).toMatchObject({ type: "reasoning", summary: [] });
    expect(await ask({ reasoning: { effort: "low" } })).toMatchObject({ summary: [] });
    expect(await ask({ reasoning: { summary: "auto" } })).toMatchObject({
      summary: [{ type: "summary_text", text: "Hmm." }],
    });
  });

  it("has encrypted content only if it is included", async () => {
    expect(await ask({})).toMatchObject({ encrypted_content: null });
    expect(await ask({ include: ["reasoning.encrypted_content"] })).toMatchObject({
      encrypted_content: expect.stringMatching(/^gAAAA/),
    });
  });
});
