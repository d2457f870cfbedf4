import { describe, expect, it } from "vitest";
import { rulesOf } from "../../../activities/model/request/wire-rules.ts";
import { toChatBody } from "../../../activities/model/wires/chat.ts";
import { toGoogleSchema } from "../../../activities/model/request/tool-schemas.ts";
import { modelRequest, type RequestParts } from "../../support/model-request.ts";

const messages = [
  { role: "system", content: "Be good." },
  { role: "user", content: "Go." },
  { role: "assistant", content: "Going." },
  { role: "tool", tool_call_id: "a", content: "done" },
];

function bodyFor(parts: RequestParts) {
  const { target } = modelRequest({ api: "chat", ...parts });
  return toChatBody({ max_tokens: 100, temperature: 0.5, messages }, target, rulesOf(target));
}

describe("the body of a chat request", () => {
  it("has OpenAI's names for its models that reason, and the common ones for all others", () => {
    expect(bodyFor({ model: "openai/o3" })).toMatchObject({
      max_completion_tokens: 100,
      messages: [{ role: "developer" }, ...messages.slice(1)],
    });
    expect(bodyFor({ model: "openai/o3" })).not.toHaveProperty("temperature");
    expect(bodyFor({ model: "acme/m", provider: { name: "acme" } })).toEqual({
      max_tokens: 100,
      temperature: 0.5,
      messages,
    });
  });

  it("has cache marks for Claude behind a router, and for no other model there", () => {
    const router = { name: "openrouter", options: { cacheMarks: true } };
    const mark = { cache_control: { type: "ephemeral" } };
    expect(
      bodyFor({ model: "openrouter/anthropic/claude-sonnet-5", provider: router })["messages"],
    ).toMatchObject([
      { content: [{ text: "Be good.", ...mark }] },
      { content: [{ text: "Go.", ...mark }] },
      messages[2],
      { content: [{ text: "done", ...mark }] },
    ]);
    expect(bodyFor({ model: "openrouter/qwen/qwen3", provider: router })["messages"]).toEqual(messages);
  });
});

it("a schema for Google's compatible endpoint omits refused keywords, and keeps the bounds", () => {
  expect(
    toGoogleSchema({
      $schema: "x",
      type: "object",
      additionalProperties: false,
      properties: {
        const: { type: "integer", exclusiveMinimum: 0, exclusiveMaximum: 10 },
        list: { type: "array", items: { const: "a" } },
      },
    }),
  ).toEqual({
    type: "object",
    properties: {
      const: { type: "integer", minimum: 1, maximum: 9 },
      list: { type: "array", items: { enum: ["a"] } },
    },
  });
});

it("a schema for Google's compatible endpoint has one type and only what that endpoint knows", () => {
  const one = { $ref: "#/$defs/a", description: "One." };
  expect(
    toGoogleSchema({
      type: "object",
      properties: {
        limit: { type: ["integer", "null"], enum: [1, 2] },
        either: { type: ["boolean", "string"], uniqueItems: true },
        choice: { oneOf: [{ type: "string", enum: ["a"] }, one] },
        any: true,
        pair: { type: "array", prefixItems: [one], items: false },
      },
    }),
  ).toEqual({
    type: "object",
    properties: {
      limit: { type: "integer", nullable: true },
      either: {},
      choice: { anyOf: [{ type: "string", enum: ["a"] }, { description: "One." }] },
      any: {},
      pair: { type: "array", items: {} },
    },
  });
});
