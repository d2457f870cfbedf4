/** What a viewer of traces makes of a span: names and forms as the conventions for generative AI have them. */
import { expect, test } from "vitest";
import {
  chatSpan,
  runSpan,
  withTexts,
  type SpanOrigin,
} from "../../../activities/runtime/telemetry/spans.ts";
import type { ModelCallRow } from "../../../activities/store/model-calls.ts";

const at: SpanOrigin = {
  trace: { traceId: "0".repeat(32), rootId: "1".repeat(16) },
  session: { id: "s", epoch: 1 },
  runId: "r",
  endMs: 2_000,
  durationMs: 500,
};
const target = { api: "chat", modelName: "gpt-4o", provider: { name: "acme" } } as const;
const call: ModelCallRow = {
  sessionId: "s",
  epoch: 1,
  step: 3,
  attempt: 1,
  purpose: "step",
  model: "acme/gpt-4o",
  status: "kept",
  finish: "stop",
  estimatedInput: 10,
  estimatePure: true,
  usage: { input: 10, output: 2, cached: 0, reasoning: 0 },
};

test("a request and its run name the model alike, without its provider", () => {
  const chat = chatSpan(at, call, target, 0);
  const run = runSpan(at, { status: "completed", model: call.model, target, steps: 3, events: [] });
  expect(chat.name).toBe("chat gpt-4o");
  for (const { attributes } of [chat, run])
    expect(attributes).toMatchObject({
      "gen_ai.request.model": "gpt-4o",
      "gen_ai.provider.name": "acme",
    });
});

test("a request without an answer has an error and no reason why an answer ended", () => {
  const { usage: _, ...rest } = call;
  const span = chatSpan(
    at,
    { ...rest, usage: undefined, status: "wasted", finish: "unavailable" },
    target,
    0,
  );
  expect(span.error).toBe("unavailable");
  expect(span.attributes).not.toHaveProperty(["gen_ai.response.finish_reasons"]);
  expect(chatSpan(at, call, target, 0).attributes).toHaveProperty(
    ["gen_ai.response.finish_reasons"],
    ["stop"],
  );
});

test("messages are JSON with a role, cut before that; empty ones are left out, texts unchanged", () => {
  const texts = {
    "gen_ai.input.messages": `Say "${"x".repeat(70_000)}`,
    "gen_ai.output.messages": "",
    "gen_ai.tool.call.result": "exit 0",
  };
  const { attributes } = withTexts(chatSpan(at, call, target, 0), texts, (text) => text);
  const [message, ...more] = JSON.parse(String(attributes["gen_ai.input.messages"]));
  expect(more).toEqual([]);
  expect(message).toMatchObject({ role: "user", parts: [{ type: "text" }] });
  expect(message.parts[0].content).toHaveLength(60_000);
  expect(attributes).not.toHaveProperty(["gen_ai.output.messages"]);
  expect(attributes).toHaveProperty(["gen_ai.tool.call.result"], "exit 0");
});
