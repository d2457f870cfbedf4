import { isCallToolResult } from "@modelcontextprotocol/client";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readServerMessage } from "../../../activities/mcp/answers.ts";
import { PLAIN, readCallResult, readToolList } from "../../../activities/mcp/results.ts";

const hi = [{ type: "text", text: "hi" }];

describe("a result of a server", () => {
  it.each<[string, unknown, object]>([
    [
      "annotations that are null",
      { content: [{ type: "text", text: "hi", annotations: null }] },
      { content: hi },
    ],
    ["an error flag that is null", { content: hi, isError: null }, { content: hi }],
    ["an error flag as text", { content: hi, isError: "true" }, { content: hi, isError: true }],
    [
      "no content beside data",
      { content: null, structuredContent: { a: 1 } },
      { content: [], structuredContent: { a: 1 } },
    ],
    ["data alone", { structuredContent: { a: 1 } }, { content: [], structuredContent: { a: 1 } }],
    ["data that is null", { content: hi, structuredContent: null }, { content: hi }],
    [
      "data that is a list",
      { content: [], structuredContent: [1] },
      { content: [{ type: "text", text: "[1]" }] },
    ],
    ["content that is a text", { content: "hi" }, { content: hi }],
    ["content that is one block", { content: hi[0] }, { content: hi }],
    ["texts in the content", { content: ["hi"] }, { content: hi }],
    ["a text", "hi", { content: hi }],
    ["a text where the message had one", { [PLAIN]: "hi" }, { content: hi }],
    ["a list of blocks", { [PLAIN]: hi }, { content: hi }],
    ["a list of numbers", [1, 2], { content: [{ type: "text", text: "[1,2]" }] }],
    ["a number", 42, { content: [{ type: "text", text: "42" }] }],
    ["nothing", null, { content: [] }],
    ["an empty object", {}, { content: [] }],
    ["an object of other fields", { answer: 42 }, { content: [], structuredContent: { answer: 42 } }],
    [
      "the first revision's form",
      { toolResult: { answer: 42 } },
      { content: [{ type: "text", text: '{"answer":42}' }] },
    ],
    [
      "text that is no text",
      { content: [{ type: "text", text: { a: 1 } }] },
      { content: [{ type: "text", text: '{"a":1}' }] },
    ],
    [
      "an unknown kind with a text",
      { content: [...hi, { type: "thinking", text: "hm" }] },
      { content: [...hi, { type: "text", text: "hm" }] },
    ],
    [
      "an unknown kind beside good text",
      { content: [...hi, { type: "video", url: "x" }] },
      {
        content: [
          ...hi,
          { type: "text", text: '[a part of the unknown kind video: {"type":"video","url":"x"}]' },
        ],
      },
    ],
    [
      "a picture with line breaks in its data",
      { content: [{ type: "image", data: "AA\nAA", mimeType: "image/png", annotations: null }] },
      { content: [{ type: "image", data: "AAAA", mimeType: "image/png" }] },
    ],
    [
      "a picture as an address",
      { content: [{ type: "image", data: "data:image/png;base64,AAAA" }] },
      { content: [{ type: "image", data: "AAAA", mimeType: "image/png" }] },
    ],
    [
      "a picture of another spelling",
      { content: [{ type: "image", data: "AAAA", mime_type: "image/png" }] },
      { content: [{ type: "image", data: "AAAA", mimeType: "image/png" }] },
    ],
    [
      "a picture that is none",
      { content: [{ type: "image", data: "%%", mimeType: "image/png" }] },
      { content: [{ type: "text", text: "[image: not shown, its data is not base64]" }] },
    ],
    [
      "a resource with nulls",
      { content: [{ type: "resource", resource: { uri: "a", mimeType: null, text: "hi", blob: null } }] },
      { content: [{ type: "resource", resource: { uri: "a", text: "hi" } }] },
    ],
    [
      "a link without a name",
      { content: [{ type: "resource_link", uri: "a", name: null }] },
      { content: [{ type: "resource_link", uri: "a", name: "a" }] },
    ],
  ])("is read leniently: %s", (_, given, result) => {
    expect(readCallResult(given)).toEqual(result);
    expect(isCallToolResult(readCallResult(given))).toBe(true);
  });

  it("is one that the protocol allows, whatever was sent, and keeps every text", () => {
    const part = fc.oneof(
      fc.record(
        {
          type: fc.constantFrom("text", "image", "audio", "resource", "resource_link", "x"),
          text: fc.anything(),
          data: fc.anything(),
          uri: fc.anything(),
          resource: fc.anything(),
          annotations: fc.jsonValue(),
        },
        { requiredKeys: ["type"] },
      ),
      fc.jsonValue(),
    );
    const sent = fc.oneof(
      fc.record(
        {
          content: fc.oneof(fc.array(part), part),
          structuredContent: fc.jsonValue(),
          isError: fc.jsonValue(),
          _meta: fc.jsonValue(),
        },
        { requiredKeys: [] },
      ),
      fc.jsonValue(),
    );
    fc.assert(
      fc.property(sent, fc.string({ minLength: 1 }), (given, text) => {
        const json = JSON.parse(JSON.stringify(given) ?? "null") as unknown;
        expect(isCallToolResult(readCallResult(json))).toBe(true);
        const beside = {
          content: [
            ...[(json as { content?: unknown } | null)?.content].flat(),
            { type: "text", text, annotations: null },
          ],
        };
        if (
          beside.content.every(
            (one) =>
              typeof one === "string" || (typeof one === "object" && one !== null && !Array.isArray(one)),
          )
        )
          expect(readCallResult(beside).content).toContainEqual({ type: "text", text });
      }),
      { seed: 35, numRuns: 1_000 },
    );
  });

  it("is untouched where the protocol allows it", () => {
    const name = fc.string({ minLength: 1 });
    const data = fc.uint8Array().map((bytes) => Buffer.from(bytes).toString("base64"));
    const annotations = fc.record(
      { audience: fc.constant(["user"]), priority: fc.constantFrom(0, 1) },
      { requiredKeys: [] },
    );
    const block = fc.oneof(
      fc.record(
        { type: fc.constant("text"), text: fc.string(), annotations },
        { requiredKeys: ["type", "text"] },
      ),
      fc.record({ type: fc.constantFrom("image", "audio"), data, mimeType: name }),
      fc.record({
        type: fc.constant("resource"),
        resource: fc.oneof(
          fc.record({ uri: name, text: fc.string() }),
          fc.record({ uri: name, blob: data, mimeType: name }),
        ),
      }),
      fc.record({ type: fc.constant("resource_link"), uri: name, name }),
    );
    const result = fc.record(
      {
        content: fc.array(block),
        structuredContent: fc.dictionary(fc.string(), fc.jsonValue()),
        isError: fc.boolean(),
      },
      { requiredKeys: ["content"] },
    );
    fc.assert(
      fc.property(result, (given) => {
        expect(readCallResult(given)).toBe(given);
      }),
      { seed: 35, numRuns: 1_000 },
    );
  });
});

describe("a list of tools", () => {
  it.each<[string, object, object]>([
    ["an empty cursor", { tools: [], nextCursor: "" }, { tools: [] }],
    ["a cursor that is null", { tools: [], nextCursor: null }, { tools: [] }],
    ["a cursor", { tools: [], nextCursor: "2" }, { tools: [], nextCursor: "2" }],
    ["tools that are null", { tools: null }, { tools: [] }],
    [
      "a bare list",
      { [PLAIN]: [{ name: "a" }] },
      { tools: [{ name: "a", inputSchema: { type: "object" } }] },
    ],
    [
      "no times, which the newest revision demands",
      { resultType: "complete", tools: [] },
      { resultType: "complete", tools: [], ttlMs: 0, cacheScope: "private" },
    ],
  ])("is read leniently: %s", (_, given, list) => {
    expect(readToolList(given as Record<string, unknown>)).toEqual(list);
  });
});

describe("a message", () => {
  it.each<[string, unknown, unknown]>([
    ["without a version", { id: 1, result: {} }, { jsonrpc: "2.0", id: 1, result: {} }],
    [
      "with an error that is null",
      { jsonrpc: "2.0", id: 1, result: {}, error: null },
      { jsonrpc: "2.0", id: 1, result: {} },
    ],
    [
      "whose result is a text",
      { jsonrpc: "2.0", id: 1, result: "hi" },
      { jsonrpc: "2.0", id: 1, result: { [PLAIN]: "hi" } },
    ],
    [
      "whose error is a text",
      { jsonrpc: "2.0", id: 1, error: "no" },
      { jsonrpc: "2.0", id: 1, error: { code: -32_603, message: "no" } },
    ],
    [
      "with parameters that are null",
      { jsonrpc: "2.0", method: "a", params: null },
      { jsonrpc: "2.0", method: "a" },
    ],
    ["that is none", { a: 1 }, undefined],
    ["that is a list", [1], undefined],
  ])("is read: %s", (_, given, message) => {
    expect(readServerMessage(given)).toEqual(message);
  });

  it("is untouched where JSON-RPC allows it", () => {
    const id = fc.oneof(fc.integer(), fc.string());
    const object = fc.dictionary(fc.string(), fc.jsonValue());
    const jsonrpc = fc.constant("2.0");
    const message = fc.oneof(
      fc.record({ jsonrpc, id, result: object }),
      fc.record({ jsonrpc, id, error: fc.record({ code: fc.integer(), message: fc.string() }) }),
      fc.record(
        { jsonrpc, id, method: fc.string(), params: object },
        { requiredKeys: ["jsonrpc", "method"] },
      ),
    );
    fc.assert(
      fc.property(message, (given) => {
        expect(readServerMessage(given)).toBe(given);
      }),
      { seed: 35, numRuns: 1_000 },
    );
  });
});
