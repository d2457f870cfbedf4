import { describe, expect, it, vi } from "vitest";
import type { ToolCallPart } from "../../activities/contract/message.ts";
import { DOT_PNG } from "../support/images.ts";
import { ask, assistant, toolResult, user, play } from "../support/model-request.ts";
import { call, scriptedModel, text, thought, type ModelScript } from "../support/scripted-model.ts";

const wires = ["responses", "chat"] as const;
const PNG_URL = `data:image/png;base64,${DOT_PNG.toString("base64")}`;

describe.each(wires)("asking a model on the %s wire", (api) => {
  /** The first answer of a server that follows this script. */
  const asked = async (script: ModelScript) => ask((await play(script)).baseUrl, { api });

  it("gives text and tool calls in order, live and whole, with the bill", async () => {
    const { baseUrl, log } = await play(
      scriptedModel()
        .answers(
          text("Looking 🎉 around."),
          call("bash", { command: "ls" }),
          call("bash", { command: "pwd" }),
        )
        // Pieces that come together are given as one.
        .with({ chunkChars: 3, chunkDelayMs: 20 }),
    );
    const { answer, deltas } = await ask(baseUrl, { api });
    expect(answer.content).toMatchObject([
      { type: "text", text: "Looking 🎉 around." },
      { type: "tool-call", toolName: "bash", input: { command: "ls" } },
      { type: "tool-call", toolName: "bash", input: { command: "pwd" } },
    ]);
    expect(answer.finish).toBe("tool-calls");
    expect(answer.usage).toEqual(log[0]?.usage);
    expect(answer.usage?.input).toBeGreaterThan(10);
    expect(answer.firstTokenMs).toBeLessThanOrEqual(answer.durationMs);
    const spoken = deltas.flatMap((delta) => (delta.type === "text" ? [delta.text] : []));
    expect(spoken.length).toBeGreaterThan(3);
    expect(spoken.join("")).toBe("Looking 🎉 around.");
    expect(deltas.filter((delta) => delta.type === "tool-call")).toHaveLength(2);
  });

  it("sends calls and results back in a form the strict server takes", async () => {
    const { baseUrl, requests } = await play(
      scriptedModel()
        .answers(text("Now."), call("bash", { command: "ls" }))
        .says("Done."),
    );
    const first = await ask(baseUrl, { api });
    const id = (first.answer.content.find((part) => part.type === "tool-call") as ToolCallPart).toolCallId;
    const messages = [user("Go."), assistant(...first.answer.content), toolResult(id, "a.txt"), user("And?")];
    const second = await ask(baseUrl, { api, messages });
    expect(second.answer).toMatchObject({ finish: "stop", content: [{ type: "text", text: "Done." }] });
    expect(requests[1]?.items).toMatchObject([
      { type: "message", role: "user" },
      { type: "message", role: "assistant", parts: [{ text: "Now." }] },
      { type: "call", callId: id, name: "bash", arguments: '{"command":"ls"}' },
      { type: "result", callId: id, parts: [{ text: "a.txt" }] },
      { type: "message", role: "user", parts: [{ text: "And?" }] },
    ]);
    expect(requests[1]).toMatchObject({
      system: "You are a coding agent.",
      maxOutputTokens: 1_000,
      tools: [{ name: "bash" }],
    });
  });

  it("asks a compatible server for the model by the name that was written", async () => {
    const models = { "openai/gpt-oss-120b": { window: 131_072, maxOutput: 65_536 } };
    const server = await play(scriptedModel().says("Hi."), { models });
    const { answer } = await ask(server.baseUrl, {
      api,
      model: "openai/gpt-oss-120b",
      modelName: "openai/gpt-oss-120b",
    });
    expect(answer.content).toMatchObject([{ type: "text", text: "Hi." }]);
    expect(server.requests[0]?.raw).toMatchObject({ model: "openai/gpt-oss-120b" });
  });

  it("asks for the detail that is configured, of a person's picture and of a result's", async () => {
    const { baseUrl, requests } = await play(scriptedModel().says("A dog, and a cat."));
    const file = { type: "file", mediaType: "image/png", data: PNG_URL } as const;
    const messages = [
      { role: "user", content: [file] } as const,
      assistant({ type: "tool-call", toolCallId: "c1", toolName: "bash", input: {} }),
      toolResult("c1", "shown", { files: [file] }),
    ];
    await ask(baseUrl, { api, imageDetail: "low", messages });
    expect(JSON.stringify(requests[0]?.raw).match(/"detail":"low"/g)).toHaveLength(2);
  });

  it("keeps calls with broken arguments and unknown names as calls", { tags: ["R35", "R36"] }, async () => {
    const { baseUrl } = await play(
      scriptedModel()
        .answers(
          call("bash", '{"command": "l'),
          call("no_such_tool", { a: 1 }),
          call("bash", '["list"]'),
          call("bash", ""),
        )
        .says("I see."),
    );
    const { answer } = await ask(baseUrl, { api });
    expect(answer.content).toMatchObject([
      { toolName: "bash", input: '{"command": "l' },
      { toolName: "no_such_tool", input: { a: 1 } },
      { toolName: "bash", input: '["list"]' },
      { toolName: "bash" },
    ]);
    const results = answer.content.map((part) =>
      toolResult((part as ToolCallPart).toolCallId, "invalid", { outcome: "error" }),
    );
    const next = await ask(baseUrl, {
      api,
      messages: [user("Go."), assistant(...answer.content), ...results],
    });
    expect(next.answer.content).toMatchObject([{ text: "I see." }]);
  });

  it("keeps two calls that bear one id, in order", { tags: ["R38"] }, async () => {
    const { answer } = await asked(
      scriptedModel().answers(
        call("bash", { command: "a" }, { callId: "same" }),
        call("bash", { command: "b" }, { callId: "same" }),
      ),
    );
    expect(answer.content).toMatchObject([
      { toolCallId: "same", input: { command: "a" } },
      // On the chat wire the SDK has given it an id of its own; else the store makes them unique.
      { toolCallId: api === "chat" ? expect.any(String) : "same", input: { command: "b" } },
    ]);
  });

  it("gives an empty answer as one with no content", { tags: ["R37"] }, async () => {
    expect((await asked(scriptedModel().answers())).answer).toMatchObject({ content: [], finish: "stop" });
  });

  it.each(["length", "content-filter"] as const)(
    "tells of a %s finish",
    { tags: ["R41"] },
    async (finish) => {
      expect((await asked(scriptedModel().says("so far").with({ finish }))).answer).toMatchObject({
        finish,
        content: [{ text: "so far" }],
      });
    },
  );

  it("keeps a call that the output limit cut in the middle of its arguments", { tags: ["R39"] }, async () => {
    const { answer } = await asked(
      scriptedModel()
        .answers(call("bash", '{"command": "echo ', { cut: true }))
        .with({ finish: "length" }),
    );
    expect(answer).toMatchObject({
      finish: "length",
      content: [{ toolName: "bash", input: '{"command": "echo ' }],
    });
  });

  it("lets calls count, whatever the finish reason says", { tags: ["R39"] }, async () => {
    expect(
      (await asked(scriptedModel().calls("bash", { command: "ls" }).with({ finish: "stop" }))).answer.finish,
    ).toBe("tool-calls");
  });

  it.each([
    ["absent", null],
    ["of zero input", { input: 0 }],
    ["absurd", { input: 90_000_000 }],
  ] as const)("has no usage if the bill is %s", { tags: ["R43"] }, async (_, usage) => {
    const { answer } = await asked(scriptedModel().says("hi").with({ usage }));
    expect(answer.usage).toBeUndefined();
    expect(answer.content).toHaveLength(1);
  });

  it("repairs a lone surrogate on its way out, and leaves text about one alone", async () => {
    const { baseUrl, requests } = await play(scriptedModel().says("fine"));
    await ask(baseUrl, { api, messages: [user("cut \ud83d here, whole 🎉, written \\ud83d")] });
    expect(requests[0]?.items[0]).toMatchObject({
      parts: [{ text: "cut \ufffd here, whole 🎉, written \\ud83d" }],
    });
  });

  it("asks without tools in a wrap-up step", async () => {
    const { baseUrl, requests } = await play(scriptedModel().says("That is where it stands."));
    await ask(baseUrl, { api, tools: [] });
    expect(requests[0]?.tools).toEqual([]);
  });

  it("is billed from the cache for a prefix sent before", async () => {
    const { baseUrl } = await play(scriptedModel().says("one").says("two"));
    const long = user("word ".repeat(3_000));
    const first = await ask(baseUrl, { api, messages: [long] });
    const second = await ask(baseUrl, {
      api,
      messages: [long, assistant({ type: "text", text: "one" }), user("more")],
    });
    expect(first.answer.usage?.cached).toBe(0);
    expect(second.answer.usage?.cached).toBeGreaterThan(2_900);
  });

  it("says nothing on the console", async () => {
    const spies = (["log", "warn", "error", "info"] as const).map((name) => vi.spyOn(console, name));
    const { baseUrl } = await play(scriptedModel().answers(thought("hm"), call("nope", "{")).fails(500));
    await ask(baseUrl, { api });
    await expect(ask(baseUrl, { api })).rejects.toThrow();
    for (const spy of spies) expect(spy).not.toHaveBeenCalled();
    vi.restoreAllMocks();
  });
});

it("a reasoning model on the chat wire is asked in a form that it takes", async () => {
  const { baseUrl, requests } = await play(scriptedModel().answers(thought("hm"), text("So.")));
  const { answer } = await ask(baseUrl, { api: "chat", model: "o3" });
  expect(answer.content).toMatchObject([
    { type: "reasoning", text: "hm", providerOptions: { longhaul: { model: "openai/o3" } } },
    { type: "text", text: "So." },
  ]);
  expect(requests[0]?.raw).toMatchObject({ max_completion_tokens: 1_000 });
  expect(requests[0]?.raw).not.toHaveProperty("prompt_cache_key");
});

describe("reasoning on the Responses wire", () => {
  it("is stored with its encrypted content and goes back with the next request", async () => {
    const { baseUrl, requests } = await play(
      scriptedModel()
        .answers(thought("First, look."), call("bash", { command: "ls" }))
        .says("Done."),
    );
    const { answer, deltas } = await ask(baseUrl);
    expect(answer.content[0]).toMatchObject({
      type: "reasoning",
      text: "First, look.",
      providerOptions: { openai: { itemId: "rs_1_0", reasoningEncryptedContent: expect.any(String) } },
    });
    expect(answer.usage?.reasoning).toBeGreaterThan(0);
    expect(deltas[0]).toEqual({ type: "reasoning", text: "First, look." });
    // As it comes back from Postgres.
    const stored = JSON.parse(JSON.stringify(answer.content)) as typeof answer.content;
    const id = (stored[1] as ToolCallPart).toolCallId;
    await ask(baseUrl, { messages: [user("Go."), assistant(...stored), toolResult(id, "x")] });
    expect(requests[1]?.items[1]).toMatchObject({
      type: "reasoning",
      id: "rs_1_0",
      text: "First, look.",
      encrypted: expect.any(String),
    });
    expect(requests[1]?.raw).toMatchObject({
      store: false,
      prompt_cache_key: "session-1",
      parallel_tool_calls: true,
    });
  });

  it("makes no part when it is empty, unless it carries encrypted content", async () => {
    const { baseUrl } = await play(
      scriptedModel().answers(thought("", false), text("a")).answers(thought(""), text("b")),
    );
    expect((await ask(baseUrl)).answer.content.map(({ type }) => type)).toEqual(["text"]);
    expect((await ask(baseUrl)).answer.content.map(({ type }) => type)).toEqual(["reasoning", "text"]);
  });
});
