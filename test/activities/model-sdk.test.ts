/** What the AI SDK does around an answer besides giving it: none of it may show, be repeated or be stored. */
import { createServer } from "node:http";
import { describe, expect, it, vi } from "vitest";
import type { Api } from "../../activities/config/model-target.ts";
import type { ModelError } from "../../activities/model/model.ts";
import { listen } from "../support/listen.ts";
import { ask, play, user, type RequestParts } from "../support/model-request.ts";
import { call, scriptedModel, text, thought, type ModelScript } from "../support/scripted-model.ts";

/** Whatever is printed meanwhile: by the console, straight to the streams, or as a warning of the process. */
async function printedDuring(work: () => Promise<unknown>): Promise<unknown[]> {
  const printed: unknown[] = [];
  const note = (...said: unknown[]) => {
    printed.push(said);
    return true;
  };
  const spies = [
    ...(["log", "warn", "error", "info", "debug", "trace"] as const).map((name) =>
      vi.spyOn(console, name).mockImplementation(note),
    ),
    vi.spyOn(process.stdout, "write").mockImplementation(note),
    vi.spyOn(process.stderr, "write").mockImplementation(note),
    vi.spyOn(process, "emitWarning").mockImplementation(note),
  ];
  process.on("unhandledRejection", note);
  try {
    await work();
    // What was left unhandled is reported after the current turn.
    await new Promise((resolve) => setImmediate(resolve));
  } finally {
    process.off("unhandledRejection", note);
    for (const spy of spies) spy.mockRestore();
  }
  return printed;
}

const SECRET = "sk-test-secret";
const abort = new Error("cancelled by the person");
const isAsked = async (script: ModelScript, request: RequestParts, aborts = false): Promise<unknown> => {
  const { baseUrl, log } = await play(script);
  const stop = new AbortController();
  const asking = ask(baseUrl, request, stop.signal).catch((error: unknown) => error);
  if (aborts) {
    await expect.poll(() => log[0]?.request).toBeDefined();
    stop.abort(abort);
  }
  return asking;
};

describe.each(["responses", "chat"] as const)("on the %s wire", (api) => {
  const broken = [call("no_such_tool", '{"a": '), call("bash", "["), call("bash", '{"__proto__": {"x": 1}}')];
  const many = Array.from({ length: 20 }, (_, index) => call("bash", { command: `${index}` }));

  it.each([
    ["an answer with calls that it cannot read", scriptedModel().answers(thought("hm"), ...broken), {}],
    ["an answer with twenty calls", scriptedModel().answers(...many), {}],
    [
      "a setting that the model does not know",
      scriptedModel().says("Hi."),
      { temperature: 0.2, model: "o3" },
    ],
    ["a refusal", scriptedModel().fails(400, `wrong key ${SECRET}`), {}],
    ["a failure", scriptedModel().fails(500, `broken at ${SECRET}`), {}],
    [
      "an error in mid-answer",
      scriptedModel().answers(text("a"), { type: "error", code: "server_error", message: SECRET }),
      {},
    ],
    [
      "garbage",
      scriptedModel().answers(text("a"), { type: "garbage", text: `data: <html>${SECRET}\n\n` }),
      {},
    ],
    ["an answer that breaks off", scriptedModel().answers(text("a"), { type: "drop" }), {}],
    ["an answer without an end", scriptedModel().answers(text("a"), { type: "end" }), {}],
    ["an answer of nothing and no end", scriptedModel().answers({ type: "end" }), {}],
  ] as [string, ModelScript, RequestParts][])(
    "nothing is printed at %s, and no key is told",
    async (_, script, request) => {
      let outcome: unknown;
      const printed = await printedDuring(async () => {
        outcome = await isAsked(script, { api, ...request });
      });
      expect(printed).toEqual([]);
      expect(outcome instanceof Error ? outcome.message : "").not.toContain(SECRET);
    },
  );

  it.each([
    ["before the headers", scriptedModel().answers().with({ beforeHeaders: "hang" })],
    ["in mid-answer", scriptedModel().answers(text("a"), { type: "hang" })],
  ])("nothing is printed at an abort %s", async (_, script) => {
    const printed = await printedDuring(async () => {
      expect(await isAsked(script, { api }, true)).toBe(abort);
    });
    expect(printed).toEqual([]);
  });

  it("the SDK's own verdict on a call is no part of the answer", async () => {
    const { answer } = await ask((await play(scriptedModel().answers(...broken))).baseUrl, { api });
    expect(answer.content.map((part) => [part.type, "input" in part && part.input])).toEqual([
      ["tool-call", '{"a": '],
      ["tool-call", "["],
      ["tool-call", '{"__proto__": {"x": 1}}'],
    ]);
    expect(answer.finish).toBe("tool-calls");
  });

  it("an error in mid-answer keeps the provider's facts, not those that the SDK guesses", async () => {
    const said = { type: "error", code: "invalid_prompt", message: "Internal server error" } as const;
    const { baseUrl } = await play(scriptedModel().answers(text("a"), said));
    const error = await ask(baseUrl, { api }).catch((thrown: unknown) => thrown as ModelError);
    expect(error).toMatchObject({ class: "rejected", status: undefined, heard: true });
  });
});

it("an error in mid-answer with a number is no overflow because the request is near the window", async () => {
  const server = createServer((_, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(`data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: "Half" } }] })}\n\n`);
    response.end(`data: ${JSON.stringify({ error: { code: 400, message: "That is refused." } })}\n\n`);
  });
  const baseUrl = `http://127.0.0.1:${await listen(server)}/v1`;
  const asking = ask(baseUrl, { api: "chat", messages: [user("Go.")], estimatedTokens: 190_000 });
  await expect(asking).rejects.toMatchObject({ class: "rejected", status: 400 });
});

/** By wire: the events of an answer, in which the provider first repeats what was asked for and then says what it did. */
const TIERS: Readonly<Record<Api, (served: string) => readonly object[]>> = {
  responses: (served) => [
    { type: "response.created", response: { id: "r", created_at: 1, model: "m", service_tier: "auto" } },
    {
      type: "response.completed",
      response: { id: "r", output: [], usage: { input_tokens: 9, output_tokens: 1 }, service_tier: served },
    },
  ],
  chat: (served) => [
    { choices: [{ index: 0, delta: { content: "Hi." } }], service_tier: "auto" },
    { choices: [{ index: 0, delta: {}, finish_reason: "stop" }], service_tier: served },
  ],
  messages: (served) => [
    {
      type: "message_start",
      message: {
        id: "m",
        type: "message",
        role: "assistant",
        model: "m",
        content: [],
        usage: { input_tokens: 9, output_tokens: 1, service_tier: served },
      },
    },
    { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 1 } },
    { type: "message_stop" },
  ],
  gemini: (served) => [
    {
      candidates: [{ content: { role: "model", parts: [{ text: "Hi." }] }, finishReason: "STOP" }],
      usageMetadata: { promptTokenCount: 9, candidatesTokenCount: 1, serviceTier: served },
    },
  ],
};

describe.each(Object.entries(TIERS) as [Api, (typeof TIERS)[Api]][])(
  "the tier of service on %s",
  (api, events) => {
    it.each([
      ["default", "default"],
      ["priority", "priority"],
      ["auto", undefined],
    ])("that is reported as %s is read as %s, where one was asked for", async (reported, tier) => {
      const server = createServer((_, response) => {
        response.writeHead(200, { "content-type": "text/event-stream" });
        response.end(
          events(reported)
            .map((event) => `data: ${JSON.stringify(event)}\n\n`)
            .join(""),
        );
      });
      const provider = { name: "acme", baseUrl: `http://127.0.0.1:${await listen(server)}/v1` };
      const { answer } = await ask("", { api, provider, tier: "flex" });
      expect(answer.tier).toBe(tier);
      const { answer: plain } = await ask("", { api, provider });
      expect(plain.tier).toBeUndefined();
    });
  },
);
