/** Servers that answer a request for a stream with one JSON value or a page, and streams that lack what only closes them. */
import { expect, describe, it } from "vitest";
import type { Api } from "../../activities/config/model-target.ts";
import { apis, askOne, streamOf, textEvents } from "../support/wire-answers.ts";

const args = { command: "ls" };
const usage = { input_tokens: 9, output_tokens: 4 };
/** By wire: an answer with a text and a call. */
const WHOLE: Readonly<Record<Api, unknown>> = {
  chat: {
    id: "c",
    object: "chat.completion",
    model: "m",
    choices: [
      {
        index: 0,
        message: {
          role: "assistant",
          content: "I look.",
          tool_calls: [
            { id: "call_1", type: "function", function: { name: "bash", arguments: JSON.stringify(args) } },
          ],
        },
        finish_reason: "tool_calls",
      },
    ],
    usage: { prompt_tokens: 9, completion_tokens: 4, total_tokens: 13 },
  },
  responses: {
    id: "r",
    object: "response",
    status: "completed",
    created_at: 1,
    model: "m",
    output: [
      {
        type: "message",
        id: "i",
        role: "assistant",
        content: [{ type: "output_text", text: "I look.", annotations: [] }],
      },
      { type: "function_call", id: "f", call_id: "call_1", name: "bash", arguments: JSON.stringify(args) },
    ],
    usage,
  },
  messages: {
    id: "m",
    type: "message",
    role: "assistant",
    model: "m",
    content: [
      { type: "text", text: "I look." },
      { type: "tool_use", id: "call_1", name: "bash", input: args },
    ],
    stop_reason: "tool_use",
    usage,
  },
  gemini: [
    {
      candidates: [
        {
          content: { role: "model", parts: [{ text: "I look." }, { functionCall: { name: "bash", args } }] },
          finishReason: "STOP",
        },
      ],
      usageMetadata: { promptTokenCount: 9, candidatesTokenCount: 4 },
    },
  ],
};
const answer = {
  content: [
    { type: "text", text: "I look." },
    { type: "tool-call", toolName: "bash", input: args },
  ],
  finish: "tool-calls",
  usage: { input: 9, output: 4 },
};

describe.each(apis)("on the %s wire", (api) => {
  it.each([
    ["application/json", 0],
    ["application/json; charset=utf-8", 2],
    ["text/event-stream", 0],
    ["text/plain", 1],
  ])("an answer in one piece is an answer, as %s", async (contentType, indent) => {
    const body = JSON.stringify(WHOLE[api], null, indent);
    expect((await askOne(api, body, { contentType })).answer).toMatchObject(answer);
    expect((await askOne(api, `\n${body}\n`, { contentType })).answer).toMatchObject(answer);
  });

  it.each([
    [{ code: 1113, msg: "Insufficient balance or no resource package. Please recharge." }, "quota"],
    [{ error: { message: "This model's maximum context length is 4096 tokens." } }, "overflow"],
    [{ error: { code: 429, message: "Rate limit reached, slow down." } }, "rate-limit"],
    [{ error: "Incorrect key", code: "invalid_api_key" }, "credentials"],
    [{ detail: "The upstream had a bad day." }, "unavailable"],
    [{ success: false, message: "The upstream had a bad day." }, "unavailable"],
    [{ message: "The server is overloaded, try again later." }, "unavailable"],
  ])("the error %j in a successful response is shown, and classified by its words", async (body, kind) => {
    const error = await askOne(api, JSON.stringify(body), { contentType: "application/json" }).catch(
      (thrown: unknown) => thrown,
    );
    const said = /(Insufficient balance|maximum context|Rate limit|Incorrect key|bad day|overloaded)/.exec(
      JSON.stringify(body),
    );
    expect(error).toMatchObject({ class: kind, message: expect.stringContaining(said?.[0] ?? "?") });
  });

  it("a page is no answer, and its words are shown", async () => {
    const page = "<!DOCTYPE html><html><body><h1>Sign in to the network</h1></body></html>";
    await expect(askOne(api, page, { contentType: "text/html" })).rejects.toMatchObject({
      class: "unavailable",
      message: expect.stringContaining("Sign in to the network"),
    });
  });
});

it("an error that stands in a chat stream without a field of that name is shown", async () => {
  const body = streamOf([{ code: 1113, msg: "Insufficient balance." }]);
  await expect(askOne("chat", body)).rejects.toMatchObject({ class: "quota" });
});

describe("a stream without the event that only closes it", () => {
  it("is an answer on the messages wire once its reason for the end has come, and not before", async () => {
    const events = textEvents.messages("Done.");
    const { answer: taken } = await askOne("messages", streamOf(events.slice(0, -1)));
    expect(taken).toMatchObject({ content: [{ type: "text", text: "Done." }], finish: "stop" });
    await expect(askOne("messages", streamOf(events.slice(0, -2)))).rejects.toMatchObject({
      class: "unavailable",
    });
  });

  it("gives the items of a response that come only in its last event, once", async () => {
    const ends = (type: string) =>
      streamOf([
        { type: "response.created", response: { id: "r", created_at: 1, model: "m" } },
        { type, response: WHOLE.responses },
      ]);
    const { answer: taken } = await askOne("responses", ends("response.completed"));
    expect(taken).toMatchObject(answer);
    const both = [
      ...textEvents.responses("I look.").slice(0, -1),
      { type: "response.completed", response: WHOLE.responses },
    ];
    expect((await askOne("responses", streamOf(both))).answer.content).toHaveLength(1);
  });
});
