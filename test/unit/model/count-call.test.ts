import { expect, it } from "vitest";
import { toCountCall, TokenCounts } from "../../../activities/model/count-tokens.ts";

const messages = { model: "m", max_tokens: 5, stream: true, system: "s", messages: [], service_tier: "x" };
const gemini = { contents: [], generationConfig: {}, serviceTier: "flex", toolConfig: { a: 1 } };
const at = (api: "messages" | "gemini", preset?: "vertex-claude" | "vertex-gemini") => ({
  api,
  modelId: "m@1",
  preset,
});

it.each([
  [
    at("messages"),
    "https://a.example/v1/messages?beta=true",
    messages,
    "https://a.example/v1/messages/count_tokens?beta=true",
    { model: "m", messages: [], system: "s" },
  ],
  [
    at("messages", "vertex-claude"),
    "https://v.example/v1/projects/p/locations/global/publishers/anthropic/messages",
    messages,
    "https://v.example/v1/projects/p/locations/global/publishers/anthropic/models/count-tokens:rawPredict",
    { model: "m", messages: [], system: "s" },
  ],
  [
    at("gemini"),
    "https://g.example/v1beta/models/m@1:streamGenerateContent?alt=sse",
    gemini,
    "https://g.example/v1beta/models/m@1:countTokens",
    { generateContentRequest: { model: "models/m@1", contents: [], toolConfig: { a: 1 } } },
  ],
  [
    at("gemini", "vertex-gemini"),
    "https://v.example/v1/projects/p/locations/l/publishers/google/models/m:streamGenerateContent?alt=sse",
    gemini,
    "https://v.example/v1/projects/p/locations/l/publishers/google/models/m:countTokens",
    { contents: [] },
  ],
])("%o is counted at its own address, by its own fields", (place, address, sent, url, body) => {
  expect(toCountCall(place, address, sent)).toMatchObject({ url, body });
  expect(toCountCall(place, address, sent)?.body).toEqual(body);
});

it("has no count on the other wires", () => {
  const place = { api: "responses", modelId: "m", preset: undefined } as const;
  expect(toCountCall(place, "https://o.example/v1/responses", {})).toBeUndefined();
});

it("asks a server without the address never again, and one in trouble after ten minutes", () => {
  const counts = new TokenCounts();
  counts.failed("lacks it", 404, 0);
  counts.failed("in trouble", 503, 0);
  counts.failed("silent", undefined, 0);
  const may = (nowMs: number) =>
    ["lacks it", "in trouble", "silent", "new"].map((name) => counts.mayAsk(name, nowMs));
  expect(may(599_999)).toEqual([false, false, false, true]);
  expect(may(600_000)).toEqual([false, true, true, true]);
});
