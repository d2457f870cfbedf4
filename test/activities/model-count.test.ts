/** The provider's own count of a request, against a front that takes what the official references list and nothing else. */
import { describe, expect, it } from "vitest";
import { createAiSdkModel } from "../../activities/model/ai-sdk.ts";
import type { ModelTarget } from "../../activities/config/model-target.ts";
import { startCountFront, type CountFrontOptions } from "../support/count-front.ts";
import { TARGETS, targetAt } from "../support/dialects/targets.ts";
import { assistant, modelRequest, play, toolResult, user } from "../support/model-request.ts";
import { scriptedModel } from "../support/scripted-model.ts";

const messages = [
  user("Look around."),
  assistant({ type: "tool-call", toolCallId: "c1", toolName: "bash", input: { command: "ls" } }),
  toolResult("c1", "a file and another ".repeat(200)),
];

type Counted = "anthropic" | "gemini";

async function front(dialect: Counted, options?: CountFrontOptions, script = scriptedModel().says("Hi.")) {
  const server = await play(script, {
    dialect,
    models: { [TARGETS[dialect].model]: { window: 64_000, reasoning: true } },
  });
  const { url, counts } = await startCountFront(server.baseUrl, options);
  const model = createAiSdkModel({ environment: { TEST_API_KEY: "k-1" }, mask: (text) => text });
  const target = targetAt(dialect, url);
  const request = (changes: Partial<ModelTarget> = {}) => modelRequest({ messages, ...target, ...changes });
  const count = (changes?: Partial<ModelTarget>, signal = new AbortController().signal) =>
    model.count?.(request(changes), signal);
  const ask = (changes?: Partial<ModelTarget>) =>
    model.ask(request(changes), () => undefined, new AbortController().signal);
  return { server, counts, count, ask };
}

describe.each(["anthropic", "gemini"] as const)("a count by %s", (dialect) => {
  it("is of what would be sent, and is what is then billed", async () => {
    const { server, counts, count, ask } = await front(dialect);
    const counted = await count();
    expect(counts.map(({ status }) => status)).toEqual([200]);
    expect(server.log).toEqual([]);
    await ask();
    expect(server.log[0]?.usage?.input).toBe(counted);
  });

  it("leaves out the operator's own fields and its tier, which only an answer has", async () => {
    const { counts, count } = await front(dialect);
    expect(await count({ body: { top_k: 40 }, tier: "flex", temperature: 0.2 })).toBeGreaterThan(500);
    expect(counts.map(({ status }) => status)).toEqual([200]);
  });

  it.each([404, 405, 501, 500, 429, 400, "nonsense"] as const)(
    "that fails with %s leaves the estimate, and is not asked for again",
    async (instead) => {
      const { counts, count } = await front(dialect, { instead });
      expect([await count(), await count(), await count()]).toEqual([undefined, undefined, undefined]);
      expect(counts).toHaveLength(1);
    },
  );

  it("that is slow leaves the estimate within some two seconds, and is not asked for again", async () => {
    const { counts, count } = await front(dialect, { instead: "nothing" });
    const began = performance.now();
    expect(await count()).toBeUndefined();
    expect(performance.now() - began).toBeLessThan(4_000);
    expect(await count()).toBeUndefined();
    expect(counts).toHaveLength(1);
  });

  it("ends with the step that waits for it", async () => {
    const { counts, count } = await front(dialect, { instead: "nothing" });
    const stop = new AbortController();
    const counting = count({}, stop.signal);
    await expect.poll(() => counts.length).toBe(1);
    const reason = new Error("cancelled by the person");
    stop.abort(reason);
    await expect(counting).rejects.toBe(reason);
  });
});

it.each([
  ["cache_control", {}],
  ["thinking", { reasoning: { effort: "high" } }],
] as const)("a count leaves out %s once its server has refused that in a request", async (field, changes) => {
  const script = scriptedModel().fails(400, `${field}: Extra inputs are not permitted`).says("Hi.");
  const { counts, count, ask } = await front("anthropic", { refuses: field }, script);
  await ask(changes);
  expect(await count(changes)).toBeGreaterThan(500);
  expect(counts.map(({ status }) => status)).toEqual([200]);
  expect(JSON.stringify(counts[0]?.body)).not.toContain(`"${field}"`);
});

it.each(["openai", "openai-chat"] as const)("there is none on the wire of %s", async (dialect) => {
  const server = await play(scriptedModel(), { dialect });
  const { url, counts } = await startCountFront(server.baseUrl);
  const model = createAiSdkModel({ environment: { TEST_API_KEY: "k-1" }, mask: (text) => text });
  const request = modelRequest(targetAt(dialect, url));
  expect(await model.count?.(request, new AbortController().signal)).toBeUndefined();
  expect([counts, server.log]).toEqual([[], []]);
});

it("a missing key is left to the request to report", async () => {
  const model = createAiSdkModel({ environment: {}, mask: (text) => text });
  const request = modelRequest(targetAt("anthropic", "http://127.0.0.1:9"));
  expect(await model.count?.(request, new AbortController().signal)).toBeUndefined();
});
