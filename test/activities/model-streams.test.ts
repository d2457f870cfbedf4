/** Streams as public reports have them, byte by byte: what is an answer, what is an error, and what is only a sign of life. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import { createAiSdkModel } from "../../activities/model/ai-sdk.ts";
import type { ModelError } from "../../activities/model/model.ts";
import { modelRequest, type RequestParts, user } from "../support/model-request.ts";
import { listen } from "../support/listen.ts";

const provider = { name: "acme" };

/** A server that answers each request to a model by `play`, with what it was asked. It has no documents about itself. */
async function serve(play: (response: ServerResponse, body: string) => unknown) {
  const asked: {
    readonly url: string | undefined;
    readonly headers: IncomingMessage["headers"];
    readonly body: string;
  }[] = [];
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (bytes: Buffer) => (body += bytes.toString()));
    request.on("end", () => {
      if (request.method === "GET") {
        response.writeHead(404).end();
        return;
      }
      asked.push({ url: request.url, headers: request.headers, body });
      void play(response, body);
    });
  });
  return { baseUrl: `http://127.0.0.1:${await listen(server)}/v1`, asked };
}

const streamed = (...lines: readonly string[]) =>
  serve((response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(lines.map((line) => `${line}\n\n`).join(""));
  });
const data = (value: unknown) => `data: ${JSON.stringify(value)}`;
const delta = (value: unknown, more: object = {}) =>
  data({ id: "1", choices: [{ index: 0, delta: value, ...more }] });

async function ask(baseUrl: string, request: RequestParts = {}, environment = {}) {
  const model = createAiSdkModel({ environment, mask: (said) => said });
  const target = {
    api: "chat",
    model: "acme/m-1",
    modelName: "m-1",
    provider: { ...provider, baseUrl },
  } as const;
  return model.ask(modelRequest({ ...target, ...request }), () => undefined, new AbortController().signal);
}
const failure = (asking: Promise<unknown>) =>
  asking.then(
    () => expect.unreachable("It did not fail."),
    (error: unknown) => error as ModelError,
  );

describe("a stream of chat completions", () => {
  it.each([
    [
      "beside the choices",
      data({
        error: { code: 502, message: "upstream broke" },
        choices: [{ index: 0, delta: { content: "" }, finish_reason: "error" }],
      }),
    ],
    [
      "within a choice",
      delta({ content: "" }, { error: { code: 502, message: "upstream broke" }, finish_reason: "error" }),
    ],
    ["as text", data({ error: "upstream broke" })],
  ])("that brings an error %s is not an answer", async (_, line) => {
    const { baseUrl } = await streamed(delta({ content: "Half" }), line, "data: [DONE]");
    expect(await failure(ask(baseUrl))).toMatchObject({
      class: "unavailable",
      message: expect.stringContaining("upstream broke"),
    });
  });

  it.each([
    ["whose finish is `error`", delta({}, { finish_reason: "error" })],
    ["that ends without a finish", "data: [DONE]"],
  ])("%s is not an answer", async (_, line) => {
    const { baseUrl } = await streamed(delta({ content: "Half" }), line);
    expect(await failure(ask(baseUrl))).toMatchObject({ class: "unavailable" });
  });

  it("has a finish of its own if it is neither complete nor cut", async () => {
    const { baseUrl } = await streamed(delta({ content: "Half" }), delta({}, { finish_reason: "abort" }));
    expect((await ask(baseUrl)).finish).toBe("error");
  });

  it("may hold comments, empty or null fields, arguments as an object, and files", async () => {
    const { baseUrl } = await streamed(
      ": OPENROUTER PROCESSING",
      "data: {}",
      data({ error: null, choices: [{ delta: { role: "", content: "Loo" }, finish_reason: null }] }),
      delta({ role: "assistant", content: "king", annotations: [{ type: "file", file: { hash: "x" } }] }),
      delta({
        tool_calls: [{ id: "a", type: "", function: { name: "bash", arguments: { command: "ls" } } }],
      }),
      delta({}, { finish_reason: "tool_calls" }),
      data({ choices: [], usage: { prompt_tokens: 10, completion_tokens: 5 } }),
    );
    expect(await ask(baseUrl)).toMatchObject({
      finish: "tool-calls",
      content: [
        { type: "text", text: "Looking" },
        { type: "tool-call", toolCallId: "a", toolName: "bash", input: { command: "ls" } },
      ],
      usage: { input: 10, output: 5 },
    });
  });

  it("gives its reasoning back under the name and in the parts it came in, and to no other model", async () => {
    const part = (text: string) => [{ type: "reasoning.text", text, index: 0, format: "acme" }];
    const { baseUrl, asked } = await streamed(
      delta({ reasoning: "First, ", reasoning_details: part("First, ") }),
      delta({ reasoning: "look.", reasoning_details: part("look.") }),
      delta({ reasoning_details: [{ type: "reasoning.encrypted", data: "sealed", index: 1 }] }),
      delta({ content: "So." }, { finish_reason: "stop" }),
    );
    const { content } = await ask(baseUrl);
    const messages = [user("Go."), { role: "assistant", content } as const, user("On.")];
    await ask(baseUrl, { messages });
    await ask(baseUrl, { messages, model: "acme/m-2", modelName: "m-2" });
    await ask(baseUrl, { messages, model: "acme/m-2", modelName: "m-2", reasoning: { send: "text" } });
    const sent = asked.map(({ body }) => (JSON.parse(body) as { messages: object[] }).messages[2]);
    expect(sent[1]).toEqual({
      role: "assistant",
      content: "So.",
      reasoning: "First, look.",
      reasoning_details: [
        { type: "reasoning.text", text: "First, look.", index: 0, format: "acme" },
        { type: "reasoning.encrypted", data: "sealed", index: 1 },
      ],
    });
    expect(sent[2]).toEqual({ role: "assistant", content: "So." });
    expect(sent[3]).toEqual({ role: "assistant", content: "<thinking>\nFirst, look.\n</thinking>So." });
  });

  it("lives as long as bytes come, be they comments", async () => {
    const { baseUrl } = await serve(async (response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      for (let comment = 0; comment < 12; comment += 1) {
        response.write(": keep-alive\n\n");
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      response.end(`${delta({ content: "At last." }, { finish_reason: "stop" })}\n\n`);
    });
    const deadlines = { connectMs: 400, firstTokenMs: 400, silenceMs: 400, answerMs: 10_000 };
    const answer = await ask(baseUrl, { deadlines });
    expect(answer.firstTokenMs).toBeGreaterThan(deadlines.firstTokenMs);
    expect(answer.content).toMatchObject([{ text: "At last." }]);
  });
});

it("shows the whole reasoning of a server that sends it on the Responses wire without ids", async () => {
  const item = { type: "reasoning", summary: [] };
  const message = {
    type: "message",
    role: "assistant",
    content: [{ type: "output_text", text: "So.", annotations: [{ type: "file", x: 1 }] }],
  };
  const event = (type: string, more: object) => data({ type, ...more });
  const { baseUrl } = await streamed(
    event("response.created", { response: { id: "r", created_at: 1, model: "m-1" } }),
    "data: {}",
    event("response.output_item.added", { output_index: 0, item }),
    event("response.reasoning_text.delta", { output_index: 0, content_index: 0, delta: "Hm." }),
    event("response.output_item.done", { output_index: 0, item }),
    event("response.output_item.added", { output_index: 1, item: { ...message, content: [] } }),
    event("response.output_text.delta", { output_index: 1, content_index: 0, delta: "So." }),
    event("response.output_item.done", { output_index: 1, item: message }),
    event("response.completed", {
      response: { id: "r", output: [item, message], usage: { input_tokens: 10, output_tokens: 5 } },
    }),
  );
  expect(await ask(baseUrl, { api: "responses" })).toMatchObject({
    finish: "stop",
    content: [
      { type: "reasoning", text: "Hm." },
      { type: "text", text: "So." },
    ],
  });
});

it("a provider of one's own gets its headers, its query and its fields, and only a key it has", async () => {
  const { baseUrl, asked } = await streamed(delta({ content: "Hi." }, { finish_reason: "stop" }));
  const own = {
    name: "acme",
    baseUrl,
    headers: { "x-team": "blue" },
    headersEnv: { "api-key": "ACME_API_KEY" },
    query: { "api-version": "2024-10-21" },
  };
  const how = { temperature: 0.2, tier: "flex", verbosity: "low", reasoning: { effort: "high" } } as const;
  await ask(baseUrl, { provider: own, ...how, body: { top_k: 5 } }, { ACME_API_KEY: "secret" });
  expect(asked[0]?.url).toBe("/v1/chat/completions?api-version=2024-10-21");
  expect(asked[0]?.headers).toMatchObject({ "x-team": "blue", "api-key": "secret" });
  expect(asked[0]?.headers).not.toHaveProperty("authorization");
  expect(JSON.parse(asked[0]?.body ?? "")).toMatchObject({
    model: "m-1",
    temperature: 0.2,
    service_tier: "flex",
    verbosity: "low",
    reasoning_effort: "high",
    top_k: 5,
  });
});

describe("an answer that is more than any model's", () => {
  const called = (args: string, index = 0) =>
    delta({
      tool_calls: [
        { index, id: `call_${index}`, type: "function", function: { name: "bash", arguments: args } },
      ],
    });
  const nested = (depth: number) => `{"command":${"[".repeat(depth)}${"]".repeat(depth)}}`;
  const end = delta({}, { finish_reason: "stop" });

  it.each([
    [
      "arguments nested deeper than any tool takes",
      [called(nested(100_000))],
      "lists and objects in one another",
    ],
    [
      "arguments that become too deep piece by piece",
      nested(300)
        .split("")
        .map((piece) => called(piece)),
      "lists and objects in one another",
    ],
    [
      "more calls than any step",
      Array.from({ length: 300 }, (_, index) => called("{}", index)),
      "more than 128 calls",
    ],
    [
      "more text than a window holds",
      Array.from({ length: 70 }, () => delta({ content: "x".repeat(64_000) })),
      "million characters",
    ],
    [
      "more thoughts than a window holds",
      Array.from({ length: 70 }, () => delta({ reasoning_content: "x".repeat(64_000) })),
      "million characters",
    ],
    [
      "longer arguments than a window holds",
      [called(`{"command":"${"x".repeat(4_100_000)}"}`)],
      "million characters",
    ],
    ["an event that has no end", [`data: ${"x".repeat(40 << 20)}`], "more than 32 MiB"],
  ])("is refused with its reason and asked for once more: %s", async (_, lines, words) => {
    const { baseUrl } = await streamed(...lines, end, "data: [DONE]");

    const error = await failure(ask(baseUrl));

    expect(error).toMatchObject({ name: "ModelError", class: "malformed" });
    expect(error.message).toContain(words);
  });

  it("is read up to the depth and the number of calls that are taken", async () => {
    const calls = Array.from({ length: 128 }, (_, index) => called(nested(199), index));
    const { baseUrl } = await streamed(...calls, end, "data: [DONE]");

    const { content } = await ask(baseUrl);

    expect(content).toHaveLength(128);
  });
});
