/** A fallback model replaces one whose provider fails, continues its session, and is replaced in turn. */
import { describe, expect, it } from "vitest";
import type { ModelTarget } from "../../activities/config/model-target.ts";
import { useAgent } from "../support/agent-harness.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { billsOf } from "../support/stored.ts";
import { askedAs } from "../support/run-config.ts";

const agent = useAgent();

const other: ModelTarget = {
  ...askedAs("openai/other"),
  contextWindow: 64_000,
  maxOutput: 4_000,
  api: "chat",
  input: ["text"],
  price: { input: 10, cached: 1, output: 20 },
};
const served = { "gpt-4o": { window: 128_000 }, other: { window: 64_000 } };
const soon = { headers: { "retry-after-ms": "10" } };

const calls = async (id: string) =>
  (await billsOf(agent.database.store, id)).map(({ model, status, step }) => ({ model, status, step }));

describe("a model with a fallback", () => {
  it(
    "is replaced after three failures, with one event, billed by model; its session continues",
    { tags: ["L3"] },
    async () => {
      const script = scriptedModel()
        .calls("bash", { command: "echo one > a.txt" })
        .fails(429, "Slow down.", { ...soon, times: 3 })
        .calls("bash", { command: "cat a.txt" })
        .says("Done by the other.");
      const session = await agent.start(script, {
        served,
        config: { fallback: [other] },
      });
      expect(await session.result()).toMatchObject({ status: "completed", result: "Done by the other." });
      const reason = "fallback";
      expect(await session.dataOf("llm:switched")).toEqual([
        { from: "openai/gpt-4o", to: "openai/other", reason },
      ]);
      expect(await calls(session.id)).toEqual([
        { model: "openai/gpt-4o", status: "kept", step: 1 },
        ...[1, 2, 3].map(() => ({ model: "openai/gpt-4o", status: "wasted", step: 2 })),
        { model: "openai/other", status: "kept", step: 2 },
        { model: "openai/other", status: "kept", step: 3 },
      ]);
    },
  );

  it("is replaced at once if its account is used up, and asked again after a while", async () => {
    const script = scriptedModel()
      .fails(429, "You exceeded your current quota.", { code: "insufficient_quota" })
      .calls("bash", { command: "sleep 0.1" })
      .says("Back again.");
    const session = await agent.start(script, {
      served,
      config: { fallback: [other], limits: { returnAfter: 50 } },
    });
    expect(await session.result()).toMatchObject({ result: "Back again." });
    const [own, its] = ["openai/gpt-4o", "openai/other"];
    expect(await session.dataOf("llm:switched")).toEqual([
      { from: own, to: its, reason: "fallback" },
      { from: its, to: own, reason: "return" },
    ]);
    expect((await calls(session.id)).map(({ model }) => model)).toEqual([own, its, own]);
  });
});

it("a session with a cost limit gets a notice at 80 % and ends with a last answer: max_steps", async () => {
  // 1,000 tokens in, 100 out at $1,000 a million each: $1.10 a step.
  const usage = { input: 1_000, output: 100, cached: 0, reasoning: 0 };
  const script = scriptedModel()
    .calls("bash", { command: "true" })
    .with({ usage })
    .calls("bash", { command: "true" })
    .with({ usage })
    .says("So far, so good.")
    .with({ usage });
  const session = await agent.start(script, {
    config: { price: { input: 1_000, cached: 1_000, output: 1_000 }, limits: { maxCostUsd: 2 } },
  });
  expect(await session.result()).toMatchObject({
    status: "max_steps",
    limit: "cost",
    result: "So far, so good.",
  });
  const events = await session.events();
  expect(await session.dataOf("limit:near")).toEqual([{ limit: "cost", used: expect.closeTo(2.2), max: 2 }]);
  expect(events.at(-1)).toMatchObject({
    type: "session:ended",
    data: { status: "max_steps", limit: "cost", reason: expect.stringContaining("limits.maxCostUsd: $2") },
  });
});
