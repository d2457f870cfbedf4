import { describe, expect, it } from "vitest";
import { toModelError } from "../../../activities/model/to-model-error.ts";
import { askedAs } from "../../support/run-config.ts";

const context = {
  ...askedAs("openai/gpt-4o"),
  api: "responses",
  mask: (text: string) => text,
  now: Date.parse("2026-11-21T12:00:00Z"),
} as const;

/** An error as the SDK throws it: the whole body, and the headers. */
const withBody = (statusCode: number, body: unknown, responseHeaders: Record<string, string> = {}) =>
  Object.assign(new Error("Error"), {
    name: "AI_APICallError",
    statusCode,
    responseBody: typeof body === "string" ? body : JSON.stringify(body),
    responseHeaders,
  });
const chat = { ...context, api: "chat" } as const;
/** A body as most services send it. */
const error = (message: string, more: object = {}) => ({ error: { message, ...more } });
/** An event of Anthropic's. */
const inStream = (type: string, message: string) => ({ type: "error", ...error(message, { type }) });

describe("errors as services really send them", { tags: ["S15"] }, () => {
  it("treats Google's free tier as a rate limit with the stated wait", () => {
    const body = {
      error: {
        code: 429,
        message:
          "You exceeded your current quota, please check your plan and billing details. * Quota exceeded for metric: generate_content_free_tier_requests, limit: 20\nPlease retry in 41.9s.",
        status: "RESOURCE_EXHAUSTED",
        details: [{ "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "41s" }],
      },
    };
    const limited = { class: "rate-limit", retryAfterMs: 41_000 };
    expect(toModelError(withBody(429, body), chat)).toMatchObject(limited);
    // The compatible endpoint sends it in an array.
    expect(toModelError(withBody(429, [body]), chat)).toMatchObject(limited);
  });

  it.each([
    ["OpenAI", 429, error("You exceeded your current quota.", { code: "insufficient_quota" })],
    ["Anthropic", 400, error("Your credit balance is too low.", { type: "invalid_request_error" })],
    ["DeepSeek", 402, error("Insufficient Balance", { code: "invalid_request_error" })],
    ["Moonshot", 429, error("Your account is suspended.", { type: "exceeded_current_quota_error" })],
    ["OpenRouter", 402, error("This request requires more credits.", { code: 402 })],
  ])("reports for %s that the account is used up", (_, status, body) => {
    expect(toModelError(withBody(status, body), chat)).toMatchObject({
      class: "quota",
      message: expect.stringContaining("no credit left"),
    });
  });

  it("treats a 403 of moderation as a refusal of the request, not of the key", () => {
    const words = 'Your chosen model requires moderation and your input was flagged for "violence"';
    const flagged = error(words, { code: 403, metadata: { reasons: ["violence"], flagged_input: "…" } });
    expect(toModelError(withBody(403, flagged), chat).class).toBe("rejected");
  });

  it("reports that a 403 with a page came from a proxy or firewall", () => {
    const page = "<!DOCTYPE html><html><body>Sorry, you have been blocked</body></html>";
    const { class: kind, message } = toModelError(withBody(403, page), context);
    expect(kind).toBe("rejected");
    expect(message).toMatch(/proxy or firewall.*Sorry, you have been blocked/);
    expect(message).not.toContain("OPENAI_API_KEY");
  });

  it("fails on llama.cpp without its template engine, and says how to start it", () => {
    const body = error("tools param requires --jinja flag", { code: 500, type: "server_error" });
    expect(toModelError(withBody(500, body), chat)).toMatchObject({
      class: "rejected",
      message: expect.stringContaining("Start llama-server with --jinja"),
    });
  });

  it.each([
    [498, error("Flex tier capacity exceeded", { code: "capacity_exceeded" }), "rate-limit"],
    [400, error("Failed to call a function.", { code: "tool_use_failed" }), "malformed"],
    [400, { message: "Too many tokens, please wait before trying again." }, "rate-limit"],
    [
      500,
      error("Jinja Exception: System message must be at the beginning", { type: "server_error" }),
      "rejected",
    ],
    [405, { detail: "Method Not Allowed" }, "not-found"],
    [501, { error: "Not Implemented" }, "not-found"],
    [400, error("Model Not Exist", { type: "invalid_request_error" }), "not-found"],
    [400, error("foo/bar is not a valid model ID", { code: 400 }), "not-found"],
    [503, error("The model is overloaded.", { status: "UNAVAILABLE" }), "unavailable"],
  ])("%i %o is %s", (status, body, kind) => {
    expect(toModelError(withBody(status, body), chat).class).toBe(kind);
  });

  it.each([404, 405, 501])(
    "says at %i on /responses that the server may speak chat completions only",
    { tags: ["S22"] },
    (status) => {
      const words = expect.stringContaining("api: chat") as string;
      const found = toModelError(withBody(status, { detail: "Not Found" }), context);
      expect(found).toMatchObject({ class: "not-found", message: words });
    },
  );

  it.each([
    [inStream("overloaded_error", "Overloaded"), "unavailable"],
    [inStream("rate_limit_error", "This request would exceed your rate limit"), "rate-limit"],
    [inStream("invalid_request_error", "messages: bad"), "rejected"],
    [inStream("authentication_error", "invalid x-api-key"), "credentials"],
    [{ response: error("An error occurred", { code: "server_error" }) }, "unavailable"],
    [{ response: error("This was flagged", { code: "cyber_policy" }) }, "rejected"],
    [{ response: error("Invalid prompt", { code: "invalid_prompt" }) }, "rejected"],
    [{ code: 502, message: "Provider disconnected" }, "unavailable"],
    [{ code: 429, message: "Provider returned error" }, "rate-limit"],
    [{ code: "rate_limit_exceeded", message: "Rate limit reached. Please try again in 4s." }, "rate-limit"],
  ])("reads the error %o in mid-stream as %s", (sent, kind) => {
    expect(toModelError(sent, context).class).toBe(kind);
  });

  it("reads the underlying provider's error from a router", { tags: ["S12"] }, () => {
    const raw = JSON.stringify(error("prompt is too long: 213462 tokens > 200000 maximum"));
    const body = error("Provider returned error", { code: 400, metadata: { raw, provider_name: "x" } });
    expect(toModelError(withBody(400, body), chat)).toMatchObject({
      class: "overflow",
      message: expect.stringContaining("213462 tokens"),
    });
    // The same in mid-stream, if it comes without a body.
    expect(toModelError(body.error, chat).class).toBe("overflow");
    const plain = error("Provider returned error", { code: 502, metadata: { raw: "upstream died" } });
    expect(toModelError(withBody(502, plain), chat).message).toContain("upstream died");
  });

  it("waits as a router's body states if its headers do not", () => {
    const reset = String(context.now + 30_000);
    const headers = { "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": reset };
    const body = error("Rate limit exceeded: free-models-per-min.", { code: 429, metadata: { headers } });
    expect(toModelError(withBody(429, body), chat)).toMatchObject({
      class: "rate-limit",
      retryAfterMs: 30_000,
    });
  });

  it("treats a 400 without a body as an overflow only if the request about fills the window", () => {
    for (const body of ["", "  ", "{}"]) {
      expect(toModelError(withBody(400, body), { ...chat, nearWindow: true }).class).toBe("overflow");
      expect(toModelError(withBody(400, body), chat).class).toBe("rejected");
    }
    const withWords = withBody(400, error("bad schema"));
    expect(toModelError(withWords, { ...chat, nearWindow: true }).class).toBe("rejected");
  });

  it("names the refusing provider's variable and setting", () => {
    const provider = { name: "groq", keyEnv: "GROQ_API_KEY", baseUrl: "https://api.groq.com/openai/v1" };
    const refused = toModelError(withBody(401, error("Invalid API Key")), {
      ...chat,
      provider,
    }).message;
    expect(refused).toContain("Set GROQ_API_KEY to a valid key for providers.groq.baseUrl");
    expect(refused).not.toContain("OPENAI");
    const down = toModelError(withBody(502, "bad gateway"), { ...chat, provider }).message;
    expect(down).toContain("check providers.groq.baseUrl");
  });
});
