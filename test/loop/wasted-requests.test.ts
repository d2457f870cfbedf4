/** Requests that are paid for nothing, and hidden thinking: more room once, estimates, a sign of life [S13]. */
import { and, asc, eq } from "drizzle-orm";
import { describe, expect, it } from "vitest";
import type { RunConfig } from "../../activities/config/agent-config.ts";
import { ChunkBatch, ChunkWriter } from "../../activities/step/chunk-writer.ts";
import { loadBill } from "../../activities/store/model-calls.ts";
import { modelCalls } from "../../activities/store/schema/index.ts";
import { appendChunks, appendEvents, readEvents } from "../../activities/store/events.ts";
import { directConfig, startDirectAgent, type DirectAgent } from "../support/direct-agent.ts";
import { playLoop } from "../support/direct-loop.ts";
import { call, scriptedModel, text, thought } from "../support/scripted-model.ts";
import { useDatabase } from "../support/test-database.ts";
import { billsOf, callRows } from "../support/stored.ts";

const database = useDatabase();

const served = {
  o3: { window: 64_000, maxOutput: 16_000, reasoning: true },
  other: { window: 64_000, maxOutput: 16_000 },
};
const thinker = (more: Partial<RunConfig> = {}): Partial<RunConfig> => ({
  model: "openai/o3",
  contextWindow: 64_000,
  maxOutput: 4_000,
  moreOutput: 16_000,
  thinks: true,
  ...more,
});
const inVain = { finish: "length", usage: { output: 4_000, reasoning: 4_000 } } as const;
const think = () => scriptedModel().answers(thought("Let me think about that.")).with(inVain);

const bills = async ({ id }: DirectAgent) =>
  (await billsOf(database.store, id)).map(({ model, status, finish }) => ({ model, status, finish }));
const rooms = (agent: DirectAgent) => agent.model.requests.map((request) => request.maxOutputTokens);

describe("an answer used up by thinking", () => {
  it("gets the room that the model has, once, and its session continues", async () => {
    const agent = await startDirectAgent(database, think().says("Done."), { served, config: thinker() });
    expect(await playLoop(agent)).toMatchObject({ status: "completed", state: { step: 1 } });
    expect(rooms(agent)).toEqual([4_000, 16_000]);
    expect(await agent.dataOf("llm:error")).toEqual([
      {
        class: "used-up",
        final: false,
        retryInMs: null,
        message: expect.stringContaining("used up its 4000 tokens of output by thinking"),
      },
    ]);
    const model = "openai/o3";
    expect(await bills(agent)).toEqual([
      { model, status: "wasted", finish: "length" },
      { model, status: "kept", finish: "stop" },
    ]);
  });

  it("ends with a typed failure that names the settings if more room was not enough", async () => {
    const script = think().answers(thought("And on.")).with(inVain);
    const agent = await startDirectAgent(database, script, { served, config: thinker() });
    expect((await playLoop(agent)).status).toBe("EmptyAnswer");
    expect(rooms(agent)).toEqual([4_000, 16_000]);
    expect((await agent.dataOf("llm:error")).at(-1)).toMatchObject({
      final: true,
      message: expect.stringMatching(
        /models\.openai\/o3\.maxOutput .* models\.openai\/o3\.reasoning\.effort/,
      ),
    });
  });

  it("is asked no second time with the same room", async () => {
    const agent = await startDirectAgent(database, think(), {
      served,
      config: thinker({ maxOutput: 16_000, moreOutput: undefined }),
    });
    expect((await playLoop(agent)).status).toBe("EmptyAnswer");
    expect(rooms(agent)).toEqual([16_000]);
  });

  it("is followed by another model if there is one", async () => {
    const other = directConfig({ model: "openai/other", contextWindow: 64_000, maxOutput: 4_000 });
    const script = think().answers(thought("And on.")).with(inVain).says("Done by the other.");
    const agent = await startDirectAgent(database, script, {
      served,
      config: thinker({ fallback: [other] }),
    });
    expect((await playLoop(agent)).status).toBe("completed");
    expect((await bills(agent)).map(({ model }) => model)).toEqual([
      "openai/o3",
      "openai/o3",
      "openai/other",
    ]);
    expect(rooms(agent)).toEqual([4_000, 16_000, 4_000]);
  });
});

describe("a request without a bill", () => {
  const price = { input: 10, cached: 1, output: 20 };

  it("counts by an estimate towards the session's cost, which says so", async () => {
    const script = scriptedModel()
      .answers(text("I begin to"), { type: "drop" })
      .fails(503, "Down.", { headers: { "retry-after-ms": "1" } })
      .says("Done.");
    const agent = await startDirectAgent(database, script, {
      config: { price, limits: { ...directConfig().limits, maxCostUsd: 5 } },
    });
    await agent.perform("openSession", { chain: agent.runId });
    const step = { step: 1 };
    await expect(agent.perform("modelStep", step)).rejects.toThrow();
    await expect(agent.perform("modelStep", step, { attempt: 2 })).rejects.toThrow();
    const facts = await agent.perform("modelStep", step, { attempt: 3 });
    const bill = await loadBill(database.store.db, agent.id);
    // What was cut off had begun to answer; what was refused with a 503 costs nothing.
    const [cut, refused] = await billsOf(database.store, agent.id);
    expect(refused?.costUsd).toBeNull();
    expect(bill.estimatedUsd).toBeCloseTo(((cut?.estimatedInput ?? 0) * 10) / 1e6, 3);
    expect(bill.estimatedUsd).toBeGreaterThan(0);
    expect(facts).toMatchObject({ kind: "answered", costUsd: expect.closeTo(bill.costUsd) });
  });
});

it("a request lost with its worker is charged once, at the price of the model that was asked", async () => {
  const price = { input: 10, cached: 1, output: 20 };
  const cheap = { model: "openai/gpt-4o-mini", price: { input: 1, cached: 0.1, output: 2 } };
  const agent = await startDirectAgent(database, scriptedModel().says("Done."), {
    config: { price, fallback: [directConfig(cheap)] },
  });
  await agent.step(1);
  const asked = (model: string, attempt: number) =>
    [
      {
        type: "step:started",
        step: 2,
        attempt,
        data: { estimatedInput: 1_000, estimated: true, triggerTokens: 1, limit: 1, window: 1 },
      },
      { type: "llm:thinking", step: 2, attempt, data: { model } },
    ] as const;
  const events = [...asked("openai/gpt-4o", 1), ...asked(cheap.model, 1), ...asked(cheap.model, 2)];
  await appendEvents(database.store.db, agent.id, 1, events);
  for (const attempt of [1, 2])
    await agent.perform("closeSession", { step: 2, status: "completed" }, { attempt });
  const { model, costUsd } = modelCalls;
  const lost = await database.store.db
    .select({ model, costUsd })
    .from(modelCalls)
    .where(and(eq(modelCalls.sessionId, agent.id), eq(modelCalls.status, "wasted")))
    .orderBy(asc(model), asc(modelCalls.attempt));
  expect(lost).toEqual([
    { model: "openai/gpt-4o", costUsd: 0.01 },
    { model: cheap.model, costUsd: 0.001 },
    { model: cheap.model, costUsd: 0.001 },
  ]);
});

describe("hidden thinking", () => {
  it("is asked for without a summary if the account is given none, and reported once", async () => {
    const script = scriptedModel()
      .answers(thought("Hm."), call("bash", { command: "true" }))
      .says("Done.");
    const agent = await startDirectAgent(database, script, {
      served: { o3: { ...served.o3, summaries: false } },
      config: thinker({ reasoning: { effort: "low" } }),
    });
    await agent.step(1);
    await agent.step(2);
    expect(agent.model.log.map(({ status }) => status)).toEqual([400, 200, 200]);
    expect(agent.model.requests.map(({ raw }) => raw["reasoning"])).toEqual([
      { effort: "low" },
      { effort: "low" },
    ]);
    const events = await readEvents(database.store.db, agent.id, 0, 1_000);
    const answers = events.flatMap(({ type, data }) => (type === "llm:response" ? [data] : []));
    expect(answers.map((data) => (data as { summaryRefused?: true }).summaryRefused)).toEqual([
      true,
      undefined,
    ]);
    expect(events.filter(({ type }) => type === "llm:error")).toEqual([]);
  });

  it("is shown to watchers while it continues", async () => {
    const agent = await startDirectAgent(database, scriptedModel());
    const batch = new ChunkBatch((answers) => appendChunks(database.store, answers));
    const writer = new ChunkWriter(
      { ...agent.deps, batch },
      {
        sessionId: agent.id,
        epoch: 1,
        step: 1,
        attempt: 1,
        model: "openai/o3",
      },
    );
    writer.push({ type: "thinking" });
    await writer.end();
    const events = await readEvents(database.store.db, agent.id, 0, 10);
    expect(events.at(-1)).toMatchObject({
      type: "llm:thinking",
      step: 1,
      data: { model: "openai/o3", hidden: true },
    });
  });
});

it("a last answer that calls a tool although it may not ends the session: nothing runs", async () => {
  const script = scriptedModel()
    .calls("bash", { command: "echo one" })
    .calls("write_file", { path: "never.txt", content: "no" }, { says: "One is done." });
  const agent = await startDirectAgent(database, script, {
    config: { limits: { ...directConfig().limits, maxSteps: 1 } },
  });
  const end = await playLoop(agent);
  expect(end.status).toBe("max_steps");
  expect(agent.model.requests.at(-1)?.raw["tool_choice"]).toBe("none");
  const calls = await callRows(database.store, agent.id);
  expect(calls.map(({ status }) => status)).toEqual([expect.any(String), "interrupted"]);
});
