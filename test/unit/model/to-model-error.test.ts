import { describe, expect, it } from "vitest";
import { ModelError } from "../../../activities/model/model.ts";
import { toModelError } from "../../../activities/model/to-model-error.ts";
import { askedAs } from "../../support/run-config.ts";

const context = {
  ...askedAs("openai/gpt-4o"),
  api: "responses",
  mask: (text: string) => text.replaceAll("sk-secret", "***"),
  now: Date.parse("2026-11-21T12:00:00Z"),
} as const;

const apiError = (statusCode: number | undefined, message: string, more: Record<string, unknown> = {}) =>
  Object.assign(new Error(message), {
    name: "AI_APICallError",
    statusCode,
    responseBody: JSON.stringify({ error: { message } }),
    ...more,
  });

it.each([401, 402, 404, 503])("%i: the provider's sentence ends once before ours", (status) => {
  const { message } = toModelError(apiError(status, "It does not exist."), context);
  expect(message).toMatch(/: It does not exist\. [A-Z]/);
});

describe("provider errors by class", { tags: ["case-12", "A19", "R31"] }, () => {
  it.each([
    [400, "Invalid value", "rejected"],
    [401, "Incorrect API key", "credentials"],
    [402, "Payment required", "quota"],
    [403, "Country not supported", "credentials"],
    [404, "The model does not exist", "not-found"],
    [408, "timeout", "unavailable"],
    [409, "conflict", "unavailable"],
    [413, "", "overflow"],
    [422, "unprocessable", "rejected"],
    [429, "slow down", "rate-limit"],
    [429, "Too many tokens per day, please wait before trying again.", "rate-limit"],
    [500, "internal", "unavailable"],
    [500, "prompt is too long: 213462 tokens > 200000 maximum", "overflow"],
    [502, "bad gateway", "unavailable"],
    [503, "overloaded", "unavailable"],
    [529, "overloaded", "unavailable"],
    [400, "maximum context length is 128000 tokens", "overflow"],
    [500, "JSON schema conversion failed: Unrecognized schema: {}", "rejected"],
    [500, 'Failed to parse messages: Unsupported content part type: "image_url"', "rejected"],
    [500, "failed to process inputs: this model is missing data required for image input", "rejected"],
    [undefined, "Failed to initialize samplers: failed to parse grammar", "rejected"],
  ])("%i '%s' is %s", (status, message, kind) => {
    const error = toModelError(apiError(status, message), context);
    expect(error).toMatchObject({ class: kind, status });
  });

  it.each([
    "ECONNREFUSED",
    "ECONNRESET",
    "ENOTFOUND",
    "EAI_AGAIN",
    "ETIMEDOUT",
    "UND_ERR_SOCKET",
    "UND_ERR_CONNECT_TIMEOUT",
  ])("%s is unavailable at any depth of causes", (code) => {
    const error = new TypeError("fetch failed", { cause: Object.assign(new Error("low"), { code }) });
    const wrapped = toModelError(new Error("Cannot connect to API", { cause: error }), context);
    expect(wrapped.class).toBe("unavailable");
    expect(wrapped.message).toContain(code);
  });

  it("says of a partial answer that it broke off, not that its server was not reached", () => {
    const broken = () => new TypeError("terminated", { cause: new Error("other side closed") });
    expect(toModelError(broken(), { ...context, heard: true }).message).toMatch(
      /^The answer of \S+ broke off/,
    );
    expect(toModelError(broken(), context).message).toMatch(/could not be reached or did not answer/);
  });

  it("says by which name the server was asked for a model, and how to ask for another", () => {
    const provider = { name: "openai", baseUrlEnv: "OPENAI_BASE_URL", keyEnv: "OPENAI_API_KEY" };
    const message = (modelName: string) =>
      toModelError(apiError(404, "no such model"), { ...context, provider, modelName }).message;
    expect(message("openai/gpt-4o")).toContain(
      "Check the model's name (asked for as openai/gpt-4o; --model gpt-4o asks for gpt-4o) and OPENAI_BASE_URL",
    );
    expect(message("gpt-4o")).toContain("Check the model's name (openai/gpt-4o, asked for as gpt-4o) and");
  });

  it("does not wait for an account without credit", () => {
    const error = apiError(
      429,
      "You exceeded your current quota, please check your plan and billing details.",
    );
    expect(toModelError(error, context)).toMatchObject({
      class: "quota",
      message: expect.stringContaining("credit"),
    });
  });

  it("masks secrets and keeps within 1,000 characters, with a remedy", () => {
    const error = toModelError(
      apiError(401, `Incorrect API key provided: sk-secret. ${"x".repeat(5_000)}`),
      context,
    );
    expect(error.message).not.toContain("sk-secret");
    expect(error.message.length).toBeLessThanOrEqual(1_000);
    expect(error.message).toContain("OPENAI_API_KEY");
  });

  it("masks a secret that the bound would otherwise split", () => {
    const error = toModelError(apiError(400, `${"x".repeat(495)}sk-secret`), context);
    expect(error.message).not.toContain("sk-s");
  });

  it("contains the wait that the provider asked for", () => {
    const error = toModelError(
      apiError(429, "slow down", { responseHeaders: { "retry-after": "7" } }),
      context,
    );
    expect(error.retryAfterMs).toBe(7_000);
  });

  it("suggests that a server may support chat completions only", { tags: ["X11"] }, () => {
    expect(toModelError(apiError(404, "Not Found"), context).message).toContain("api: chat");
    expect(toModelError(apiError(404, "Not Found"), { ...context, api: "chat" }).message).not.toContain(
      "api: chat",
    );
  });

  it("returns a ModelError unchanged", () => {
    const error = new ModelError("silent", { class: "silent" });
    expect(toModelError(error, context)).toBe(error);
  });

  it.each([null, undefined, "text", 5, {}])("returns an error for %o", (thrown) => {
    expect(toModelError(thrown, context)).toBeInstanceOf(ModelError);
  });

  it.each([
    new TypeError("terminated"),
    new TypeError("terminated", { cause: Object.assign(new Error("closed"), { code: "UND_ERR_SOCKET" }) }),
    new TypeError("fetch failed", { cause: Object.assign(new Error("x"), { code: "ECONNRESET" }) }),
    new Error("socket hang up"),
  ])("counts a connection that broke off as passing: %s", (error) => {
    expect(toModelError(error, context).class).toBe("unavailable");
  });

  it("terminates on a circular chain of causes", () => {
    const error = new Error("a") as Error & { cause: unknown };
    error.cause = error;
    expect(toModelError(error, context).class).toBe("unavailable");
  });
});

it("a proxy's error page is shown as text without its markup", () => {
  const page = "<html><head><style>b{}</style></head><body><h1>502 Bad\n Gateway</h1></body></html>";
  const error = toModelError(apiError(502, "Bad Gateway", { responseBody: page }), context);
  expect(error.message).toContain("502 Bad Gateway");
  expect(error.message).not.toContain("<");
});
