import { describe, expect, it } from "vitest";
import { DOT_PNG } from "../support/images.ts";
import { perTest } from "../support/per-file.ts";
import { startScriptedModel } from "../support/scripted-model.ts";

const DOT = `data:image/png;base64,${DOT_PNG.toString("base64")}`;
const server = perTest(() =>
  startScriptedModel(
    { parts: [{ type: "text", text: "ok" }] },
    { models: { "text-only": { window: 1_000 } }, apiKey: "right" },
  ),
);

interface Refused {
  readonly status: number;
  readonly error: { readonly message: string; readonly code: string | null; readonly type: string };
}

async function post(path: string, body: unknown, key: string | undefined = "right"): Promise<Refused> {
  const response = await fetch(`${server.baseUrl}${path}`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(key === "" ? {} : { authorization: `Bearer ${key}` }),
    },
    body: typeof body === "string" || body instanceof Uint8Array ? (body as string) : JSON.stringify(body),
  });
  const answer = (await response.json()) as { error: Refused["error"] };
  return { status: response.status, error: answer.error };
}

const say = (text: string) => ({ role: "user", content: text });
const responses = (input: unknown[], more: Record<string, unknown> = {}) =>
  post("/responses", { model: "gpt-4o", store: false, input: [say("go"), ...input], ...more });
const chat = (messages: unknown[], more: Record<string, unknown> = {}) =>
  post("/chat/completions", { model: "gpt-4o", messages: [say("go"), ...messages], ...more });

const called = (id: string, name = "bash") => ({ type: "function_call", call_id: id, name, arguments: "{}" });
const output = (id: string) => ({ type: "function_call_output", call_id: id, output: "x" });
const chatCalled = (...ids: string[]) => ({
  role: "assistant",
  content: null,
  tool_calls: ids.map((id) => ({ id, type: "function", function: { name: "bash", arguments: "{}" } })),
});
const chatOutput = (id: string) => ({ role: "tool", tool_call_id: id, content: "x" });

describe("what the model server takes", () => {
  it("is a whole conversation on either wire, streamed or not", async () => {
    expect((await responses([called("a"), called("b"), output("a"), output("b"), say("on")])).status).toBe(
      200,
    );
    expect((await chat([chatCalled("a", "b"), chatOutput("a"), chatOutput("b"), say("on")])).status).toBe(
      200,
    );
    expect(server.requests.map(({ api, stream }) => ({ api, stream }))).toEqual([
      { api: "responses", stream: false },
      { api: "chat", stream: false },
    ]);
    expect(server.log[0]?.usage?.input).toBe(server.requests[0]?.inputTokens);
  });

  it("is listed", async () => {
    const listed = (await (await fetch(`${server.baseUrl}/models`)).json()) as { data: { id: string }[] };
    expect(listed.data.map(({ id }) => id)).toContain("text-only");
  });

  it("is nothing at any other address", async () => {
    expect((await post("/completions", {})).status).toBe(404);
  });
});

describe("what the model server refuses, as the real one does", () => {
  it.each([
    ["a call without its result", [called("a"), say("on")], "No tool output found for function call a"],
    ["a call at the end without its result", [called("a")], "No tool output found for function call a"],
    [
      "one of two calls without its result",
      [called("a"), called("b"), output("b")],
      "output found for function call a",
    ],
    ["a result without its call", [output("a")], "No tool call found for function call output"],
    ["a second result for one call", [called("a"), output("a"), output("a")], "No tool call found"],
    ["results after something else", [called("a"), say("wait"), output("a")], "No tool output found"],
    [
      "a call between the results of its siblings",
      [called("a"), called("b"), output("a"), called("c"), output("b"), output("c")],
      "No tool output found",
    ],
    ["the same call id twice", [called("a"), output("a"), called("a"), output("a")], "Duplicate item"],
    ["a call's name with stray tokens", [called("a", "bash<|x|>"), output("a")], "does not match pattern"],
    ["a call id that is too long", [called("a".repeat(65)), output("a".repeat(65))], "string too long"],
    ["an unknown item", [{ type: "mystery" }], "Invalid value"],
    ["a reference to an item that was not stored", [{ type: "item_reference", id: "msg_1" }], "not found"],
    [
      "reasoning without its encrypted content",
      [
        { type: "reasoning", id: "rs_1", summary: [] },
        { role: "assistant", content: "x" },
      ],
      "not found",
    ],
    [
      "reasoning encrypted by someone else",
      [
        { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "gAAAA.x.y" },
        { role: "assistant", content: "x" },
      ],
      "could not be verified",
    ],
  ])("on the Responses wire: %s", async (_, input, message) => {
    const refused = await responses(input);
    expect(refused.status).toBeGreaterThanOrEqual(400);
    expect(refused.error.message).toContain(message);
  });

  it.each([
    [
      "a call without its result",
      [chatCalled("a", "b"), chatOutput("a"), say("on")],
      "did not have response messages: b",
    ],
    ["a result without its call", [chatOutput("a")], "must be a response to a preceeding message"],
    [
      "results after something else",
      [chatCalled("a"), say("wait"), chatOutput("a")],
      "followed by tool messages",
    ],
    ["an empty list of calls", [{ role: "assistant", content: "x", tool_calls: [] }], "empty array"],
    ["an unknown role", [{ role: "robot", content: "x" }], "Invalid value: 'robot'"],
    [
      "an image in a tool message",
      [
        chatCalled("a"),
        {
          role: "tool",
          tool_call_id: "a",
          content: [{ type: "image_url", image_url: { url: DOT } }],
        },
      ],
      "only allowed for messages with role 'user'",
    ],
  ])("on the chat wire: %s", async (_, messages, message) => {
    const refused = await chat(messages);
    expect(refused.status).toBe(400);
    expect(refused.error.message).toContain(message);
  });

  it("reasoning with nothing after it", async () => {
    const first = await fetch(`${server.baseUrl}/responses`, { method: "POST" });
    expect(first.status).toBe(401);
    const { encryptReasoning } = await import("../support/model-server/encrypted-reasoning.ts");
    const item = {
      type: "reasoning",
      id: "rs_1",
      summary: [],
      encrypted_content: encryptReasoning("rs_1", "x"),
    };
    expect((await responses([item, { role: "assistant", content: "so" }])).status).toBe(200);
    expect((await responses([item, say("on")])).error.message).toContain(
      "without its required following item",
    );
  });

  it.each([
    [
      "a name with a space",
      { type: "function", name: "run it", parameters: { type: "object" } },
      "does not match pattern",
    ],
    [
      "a schema of text",
      { type: "function", name: "run", parameters: { type: "string" } },
      "must be a JSON Schema",
    ],
    [
      "a schema with an array of nothing",
      { type: "function", name: "run", parameters: { type: "object", properties: { a: { type: "array" } } } },
      "array schema missing items",
    ],
    ["no schema", { type: "function", name: "run" }, "Invalid schema for function 'run'"],
  ])("a tool with %s", async (_, tool, message) => {
    const refused = await responses([], { tools: [tool] });
    expect(refused.status).toBe(400);
    expect(refused.error.message).toContain(message);
  });

  it("a lone surrogate, invalid UTF-8 and what is not JSON", async () => {
    for (const body of ['{"model":"gpt-4o","input":"\\ud83d"}', "{", new Uint8Array([0x7b, 0xff, 0x7d])]) {
      const refused = await post("/responses", body);
      expect(refused).toMatchObject({
        status: 400,
        error: { message: expect.stringContaining("could not parse the JSON body") },
      });
    }
  });

  it("a missing and a wrong key", async () => {
    expect((await post("/responses", {}, "")).status).toBe(401);
    expect(await post("/responses", {}, "wrong")).toMatchObject({
      status: 401,
      error: { code: "invalid_api_key" },
    });
  });

  it("an unknown model, in each wire's own way", async () => {
    expect(await responses([], { model: "gpt-9" })).toMatchObject({
      status: 400,
      error: { code: "model_not_found" },
    });
    expect(await chat([], { model: "gpt-9" })).toMatchObject({
      status: 404,
      error: { code: "model_not_found" },
    });
    expect((await chat([], { model: "__proto__" })).status).toBe(404);
  });

  it("an image for a model that takes none", async () => {
    const image = {
      role: "user",
      content: [{ type: "input_image", image_url: DOT, detail: "auto" }],
    };
    expect((await responses([image], { model: "text-only" })).error.message).toContain(
      "image_url is only supported",
    );
    expect((await responses([image])).status).toBe(200);
  });

  it("what exceeds the window by the real tokenizer's count", async () => {
    const words = (count: number) => [say(" word".repeat(count))];
    expect((await responses(words(980), { model: "text-only" })).status).toBe(200);
    const message = "context";
    expect(await responses(words(1_001), { model: "text-only" })).toMatchObject({
      status: 400,
      error: { code: "context_length_exceeded", message: expect.stringContaining(message) },
    });
    expect(await chat(words(1_001), { model: "text-only" })).toMatchObject({
      status: 400,
      error: {
        code: "context_length_exceeded",
        message: expect.stringContaining("maximum context length is 1000 tokens"),
      },
    });
  });

  it("more output than the model can give, and too little", async () => {
    expect((await responses([], { max_output_tokens: 20_000 })).error.message).toContain(
      "supports at most 16384",
    );
    expect((await responses([], { max_output_tokens: 5 })).error.message).toContain(">= 16");
  });

  it("encrypted reasoning of a model that does not reason", async () => {
    const include = ["reasoning.encrypted_content"];
    expect((await responses([], { include })).error.message).toContain("Encrypted content is not supported");
    expect((await responses([], { include, model: "o3" })).status).toBe(200);
  });
});
