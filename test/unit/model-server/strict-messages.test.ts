import { describe, expect, it } from "vitest";
import { DOT_PNG } from "../../support/images.ts";
import { perTest } from "../../support/per-file.ts";
import { call, scriptedModel, startScriptedModel, text, thought } from "../../support/scripted-model.ts";

const models = {
  claude: { window: 1_000, maxOutput: 8_000, input: ["text", "image"], reasoning: true },
} as const;
const server = perTest(() =>
  startScriptedModel(
    scriptedModel()
      .answers(thought("Look first."), text("So."), call("run", { path: "a" }))
      .forever({ parts: [text("ok")] }),
    { models, dialect: "anthropic" },
  ),
);

type Body = Record<string, unknown>;
const headers = { "content-type": "application/json", "x-api-key": "k", "anthropic-version": "2023-06-01" };

async function send(more: Body, sent: Record<string, string> = headers): Promise<Response> {
  const body = { model: "claude", max_tokens: 2_000, messages: [{ role: "user", content: "go" }], ...more };
  return fetch(`${server.baseUrl}/messages`, { method: "POST", headers: sent, body: JSON.stringify(body) });
}

async function post(more: Body): Promise<string> {
  const response = await send(more);
  const answer = (await response.json()) as { error?: { type: string; message: string } };
  return response.status === 200
    ? "taken"
    : `${response.status} ${answer.error?.type}: ${answer.error?.message}`;
}

const go = { role: "user", content: "go" };
const on = { role: "user", content: "on" };
const use = (id: string) => ({ type: "tool_use", id, name: "run", input: {} });
const result = (id: string) => ({ type: "tool_result", tool_use_id: id, content: "x" });
const conversation = (...messages: unknown[]): Body => ({ messages: [go, ...messages] });
const says = (...content: unknown[]) => ({ role: "assistant", content });
const answers = (...content: unknown[]) => ({ role: "user", content });
const image = (media_type: string, data = DOT_PNG.toString("base64")) =>
  answers({ type: "image", source: { type: "base64", media_type, data } });
const marked = (count: number) =>
  Array.from({ length: count }, () => ({ type: "text", text: "x", cache_control: { type: "ephemeral" } }));

describe("Anthropic's wire accepts", () => {
  it.each<[string, Body]>([
    ["calls with their results", conversation(says(use("a"), use("b")), answers(result("b"), result("a")))],
    ["words after results", conversation(says(use("a")), answers(result("a"), { type: "text", text: "on" }))],
    ["two messages of the user in a row", conversation(on)],
    ["an image", conversation(image("image/png"))],
    ["four cache marks", { system: marked(2), messages: [{ role: "user", content: marked(2) }] }],
  ])("%s", async (_, more) => {
    expect(await post(more)).toBe("taken");
  });

  it("its own thoughts, and no others", async () => {
    const thinking = { type: "enabled", budget_tokens: 1_024 };
    const answer = (await (await send({ thinking })).json()) as { content: Body[]; usage: Body };
    expect(answer.content.map((block) => block["type"])).toEqual(["thinking", "text", "tool_use"]);
    const [thoughts, ...rest] = answer.content;
    const results = answers(result(String(rest.at(-1)?.["id"])));
    expect(await post({ thinking, ...conversation(says(thoughts, ...rest), results) })).toBe("taken");
    expect(
      await post({ thinking, ...conversation(says({ ...thoughts, thinking: "Other." }, ...rest), results) }),
    ).toContain("Invalid `signature` in `thinking` block");
    expect(await post({ thinking, ...conversation(says(...rest), results) })).toContain(
      "must start with a thinking block",
    );
  });

  it("no thoughts if none were requested", async () => {
    const answer = (await (await send({})).json()) as { content: Body[] };
    expect(answer.content.map((block) => block["type"])).toEqual(["text", "tool_use"]);
  });
});

describe("Anthropic's wire refuses", () => {
  it.each<[string, Body, string]>([
    ["no limit of output", { max_tokens: undefined }, "max_tokens: Field required"],
    ["too large a limit", { max_tokens: 9_000 }, "9000 > 8000, which is the maximum"],
    ["an unknown parameter", { max_output_tokens: 5 }, "max_output_tokens: Extra inputs are not permitted"],
    ["a system message", { messages: [{ role: "system", content: "x" }, go] }, 'Unexpected role "system"'],
    ["its words at the end", conversation(says({ type: "text", text: "so" })), "assistant message prefill"],
    [
      "its words at the beginning",
      { messages: [says({ type: "text", text: "so" }), go] },
      'must use the "user" role',
    ],
    ["empty text", conversation(says({ type: "text", text: "" }), on), "blocks must be non-empty"],
    ["blank text", conversation(says({ type: "text", text: " \n" }), on), "must contain non-whitespace text"],
    ["empty content", conversation(says(), on), "must have non-empty content"],
    [
      "a call without its result",
      conversation(says(use("a")), on),
      "`tool_use` ids were found without `tool_result` blocks immediately after: a",
    ],
    [
      "words in front of a result",
      conversation(says(use("a")), answers({ type: "text", text: "on" }, result("a"))),
      "without `tool_result` blocks",
    ],
    [
      "a result without its call",
      conversation(says({ type: "text", text: "so" }), answers(result("a"))),
      "unexpected `tool_use_id`",
    ],
    ["two results", conversation(says(use("a")), answers(result("a"), result("a"))), "a single result"],
    [
      "a call id of another form",
      conversation(says(use("functions.run:0")), answers(result("functions.run:0"))),
      "tool_use.id: String should match pattern",
    ],
    [
      "one id twice",
      conversation(says(use("a")), answers(result("a")), says(use("a")), answers(result("a"))),
      "ids must be unique",
    ],
    [
      "arguments as text",
      conversation(says({ ...use("a"), input: "x" }), answers(result("a"))),
      "be a valid dictionary",
    ],
    [
      "a thought without its signature",
      conversation(says({ type: "thinking", thinking: "x" }, { type: "text", text: "so" }), on),
      "signature: Field required",
    ],
    [
      "a thought at the end",
      conversation(says({ type: "thinking", thinking: "", signature: "" }), on),
      "Invalid `signature`",
    ],
    ["five cache marks", { system: marked(5) }, "A maximum of 4 blocks"],
    ["an image that is none", conversation(image("image/png", "AAAA")), "Could not process image"],
    ["an image of another type", conversation(image("image/jpeg")), "appears to be a image/png image"],
    [
      "a tool choice without tools",
      { tool_choice: { type: "auto" } },
      "only be specified while providing tools",
    ],
    ["OpenAI's tool choice", { tool_choice: "auto" }, "Input tag does not match"],
    [
      "a budget above the limit",
      { thinking: { type: "enabled", budget_tokens: 2_000 } },
      "must be greater than `thinking.budget_tokens`",
    ],
    ["more than the window", { system: " word".repeat(1_001) }, "prompt is too long: "],
    ["an unknown model", { model: "claude-0" }, "404 not_found_error: model: claude-0"],
  ])("%s", async (_, more, message) => {
    expect(await post(more)).toContain(message);
  });

  it("a request without key or version", async () => {
    expect((await send({}, { ...headers, "x-api-key": "" })).status).toBe(401);
    const { "anthropic-version": _, ...rest } = headers;
    expect((await send({}, rest)).status).toBe(400);
  });
});
