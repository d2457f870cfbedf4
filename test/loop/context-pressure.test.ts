/** What is too much for the window: floods of messages, results larger than it, a window that shrinks, another tokenizer. */
import { eq } from "drizzle-orm";
import { describe, expect, it } from "vitest";
import { resolveModel } from "../../activities/config/models.ts";
import { guidance as parkedRows, sessions } from "../../activities/store/schema/index.ts";
import { switchModel } from "../../activities/store/session-settings.ts";
import type { ParsedRequest, Reply } from "../support/model-server/wire.ts";
import { directConfig, guidance, startDirectAgent, type DirectAgent } from "../support/direct-agent.ts";
import { playLoop } from "../support/direct-loop.ts";
import { mixedText } from "../support/mixed-text.ts";
import { call, countTokens, type Turn } from "../support/scripted-model.ts";
import { goodSummary, isSummaryRequest, says, wordsOf } from "../support/scripted-summaries.ts";
import { useDatabase } from "../support/test-database.ts";
import { roundsOf, transcriptOf } from "../support/stored.ts";
import { askedAs } from "../support/run-config.ts";

const database = useDatabase();

const refused = (agent: DirectAgent) => agent.model.log.filter((served) => served.status !== 200);

/** Summaries if they are asked for, else the answers of a list, the last one forever. */
function answers(...replies: readonly (Reply | ((request: ParsedRequest) => Reply))[]): Turn {
  let step = 0;
  return (request) => {
    if (isSummaryRequest(request)) return goodSummary(request);
    const reply = replies[Math.min(step++, replies.length - 1)] as (typeof replies)[number];
    return typeof reply === "function" ? reply(request) : reply;
  };
}

const read = (...paths: readonly string[]): Reply => ({
  parts: paths.map((path) => call("read_file", { path })),
});

describe("a burst of messages", () => {
  it(
    "enters a share of the window at a time, in order, each once, and no request overflows",
    { tags: ["R44"], timeout: 120_000 },
    async () => {
      const COUNT = 10_000;
      const agent = await startDirectAgent(database, answers(says("Understood.")), {
        keepRequests: false,
        config: { contextWindow: 128_000 },
      });
      const items = Array.from({ length: COUNT }, (_, place) =>
        guidance(`Remark ${place} about the quay.`, `burst-${place}`),
      );
      for (let from = 0; from < COUNT; from += 1_000) await agent.say(...items.slice(from, from + 1_000));
      const last = guidance("And this came last of all.", "burst-last");

      const end = await playLoop(agent, { guidanceAt: (step) => (step === 1 ? [last] : []) });

      expect(end.status).toBe("completed");
      expect(refused(agent)).toEqual([]);
      const rows = (await transcriptOf(database.store, agent.id)).filter((row) => row.kind === "guidance");
      const ids = rows.flatMap((row) => (row.meta as { ids: string[] }).ids);
      expect(ids).toEqual([...items.map((item) => item.id), "burst-last"]);
      expect(Math.max(...rows.map((row) => row.tokenCount))).toBeLessThanOrEqual(20_000);
      const open = await database.store.db
        .select()
        .from(parkedRows)
        .where(eq(parkedRows.sessionId, agent.id));
      expect(open.every((row) => row.deliveredSequence !== null)).toBe(true);
    },
  );

  it("brings no more to a step that is taken again than the first attempt did", async () => {
    const agent = await startDirectAgent(database, answers(says("Read.")));
    const items = Array.from({ length: 400 }, (_, place) => guidance(mixedText(place, 3), `again-${place}`));
    await agent.say(...items);
    const first = await agent.perform("modelStep", { step: 1 });
    expect(first.left?.length).toBeGreaterThan(0);
    const second = await agent.perform("modelStep", { step: 1 }, { attempt: 2 });
    expect(second).toMatchObject({ left: first.left });
    expect(second.taken).toBeUndefined();
    // Not even one that came since: it is younger than those that wait.
    await agent.say(guidance("And this.", "again-late"));
    const again = await agent.perform("modelStep", { step: 1 }, { attempt: 3 });
    expect([again.taken, again.left]).toEqual([undefined, first.left]);
    expect(agent.model.log).toHaveLength(1);
  });

  it(
    "takes a message that came as a blob as its words, and by a handle if no window holds it",
    { tags: ["case-10"] },
    async () => {
      const said = `Mind the beginning. ${mixedText(7, 1_500)} Mind the end.`;
      const agent = await startDirectAgent(
        database,
        answers((request) => {
          const handle = /read_output handle=..(m\d+)/.exec(wordsOf(request))?.[1];
          return { parts: [call("read_output", { handle, offset: said.length - 40 })] };
        }, says("Read to its end.")),
      );
      const { saveBlob } = await import("../../activities/store/blobs.ts");
      const blob = await saveBlob(database.store.db, Buffer.from(said), "text/plain", "message.txt");
      const end = await playLoop(agent, {
        guidanceAt: (step) => (step === 1 ? [{ ...guidance("", "blob"), parts: [blob] }] : []),
      });
      expect(countTokens(said)).toBeGreaterThan(32_000);
      expect(end.status).toBe("completed");
      expect(refused(agent)).toEqual([]);
      const asked = wordsOf(agent.model.requests.at(-1) as ParsedRequest);
      expect(asked).toContain("Mind the beginning.");
      expect(asked.match(/Mind the end\./g)?.length).toBeGreaterThanOrEqual(2);
    },
  );
});

describe("results of one step that are larger than the window together", () => {
  it(
    "are hidden behind their handles as far as it takes, and the agent continues",
    { tags: ["case-10"] },
    async () => {
      const names = ["a", "b", "c", "d", "e", "f"].map((name) => `${name}.txt`);
      const agent = await startDirectAgent(database, answers(read(...names), says("Looked at.")));
      for (const [place, name] of names.entries())
        await agent.sandbox.files.write(name, Buffer.from(mixedText(place, 900)));
      const end = await playLoop(agent);
      expect(end.status).toBe("completed");
      expect(refused(agent)).toEqual([]);
      const asked = wordsOf(agent.model.requests.at(-1) as ParsedRequest);
      expect(asked).toMatch(/Old tool result content cleared\] read_output handle=..s1c\d/);
      expect(await agent.events()).toContain("context:pruned");
    },
  );

  it(
    "end the run if even that does not help, and the session resumes with a larger window",
    { tags: ["case-10"] },
    async () => {
      const agent = await startDirectAgent(database, answers(says("Done.")), {
        served: { "gpt-4o": { window: 8_000, maxOutput: 1_000 }, large: { window: 128_000 } },
        instructions: mixedText(5, 400),
        task: mixedText(3, 400),
        config: { contextWindow: 8_000, maxOutput: 1_000 },
      });
      expect((await playLoop(agent)).status).toBe("ContextOverflow");
      expect(agent.model.log).toEqual([]);
      await switchModel(database.store, agent.id, {
        ...directConfig({ model: "openai/large" }),
        contextWindow: 128_000,
      });
      agent.runId = "run-2";
      expect((await playLoop(agent)).status).toBe("completed");
      expect(refused(agent)).toEqual([]);
    },
  );
});

describe("another model in mid-run", () => {
  it.each([
    ["old results are hidden", "auto", "context:pruned"],
    ["a summary is made, if they are never hidden", "never", "context:compressed"],
  ] as const)(
    "with a smaller window is shown to watchers, and before its first step %s [llm:switched]",
    async (_, prune, made) => {
      const names = Array.from({ length: 12 }, (_, place) => `file-${place}.txt`);
      const served = { "gpt-4o": { window: 128_000 }, small: { window: 16_000, maxOutput: 1_000 } };
      const agent = await startDirectAgent(
        database,
        answers(...names.map((name) => read(name)), says("Half way."), says("Done.")),
        {
          served,
          config: { contextWindow: 128_000, context: { strategy: "threshold-turns", options: { prune } } },
        },
      );
      for (const [place, name] of names.entries())
        await agent.sandbox.files.write(name, Buffer.from(mixedText(place, 120)));
      expect((await playLoop(agent)).status).toBe("completed");
      const large = agent.model.log.at(-1)?.usage;
      expect(large?.input ?? 0).toBeGreaterThan(20_000);

      const models = { "openai/small": { contextWindow: 16_000, maxOutput: 1_000 } };
      const resolved = resolveModel("openai/small", { models, providers: {} });
      if (!resolved.ok) throw new Error(resolved.message);
      expect(await switchModel(database.store, agent.id, resolved.model)).toBe(true);
      expect(await switchModel(database.store, agent.id, resolved.model)).toBe(false);
      agent.runId = "run-2";
      expect((await playLoop(agent)).status).toBe("completed");

      expect(refused(agent)).toEqual([]);
      const events = await agent.events();
      expect(events.indexOf(made)).toBeGreaterThan(events.indexOf("llm:switched"));
      expect(events.includes("context:compressed")).toBe(prune === "never");
      const [row] = await database.store.db.select().from(sessions).where(eq(sessions.id, agent.id));
      expect(row?.config).toMatchObject({ model: "openai/small", contextWindow: 16_000 });
    },
  );

  it("brings its figures to a run on its way, and its predecessor's bill no longer counts", async () => {
    const served = { "gpt-4o": { window: 32_000 }, small: { window: 16_000, maxOutput: 1_000 } };
    const agent = await startDirectAgent(database, answers(says("One."), says("Two.")), { served });
    const first = await agent.perform("modelStep", { step: 1, model: "openai/gpt-4o" });
    expect(first.policy).toBeUndefined();
    const small = directConfig({ model: "openai/small", contextWindow: 16_000, maxOutput: 1_000 });
    await switchModel(database.store, agent.id, small);
    await agent.say(guidance("Go on."));
    const second = await agent.perform("modelStep", { step: 2, model: "openai/gpt-4o" });
    expect(second).toMatchObject({
      kind: "answered",
      policy: { model: "openai/small", budget: { contextWindow: 16_000 } },
    });
    const events = await agent.deps.store.db.query.modelCalls.findMany();
    expect(events.filter((row) => row.sessionId === agent.id).map((row) => row.estimatePure)).toEqual([
      true,
      true,
    ]);
  });
});

it("a summariser of its own gets no more than its own window holds, on its own wire", async () => {
  const names = Array.from({ length: 10 }, (_, place) => `file-${place}.txt`);
  const agent = await startDirectAgent(database, answers(...names.map((name) => read(name)), says("Done.")), {
    served: { "gpt-4o": { window: 32_000 }, tiny: { window: 8_000, maxOutput: 1_200 } },
    config: {
      context: { strategy: "threshold-rounds", options: { prune: "never" } },
      summariser: { ...askedAs("openai/tiny"), contextWindow: 8_000, maxOutput: 1_200, api: "chat" },
    },
  });
  for (const [place, name] of names.entries())
    await agent.sandbox.files.write(name, Buffer.from(mixedText(place, 150)));
  expect((await playLoop(agent)).status).toBe("completed");
  expect(refused(agent)).toEqual([]);
  const asked = agent.model.requests.filter(isSummaryRequest);
  expect(asked.length).toBeGreaterThan(0);
  expect(asked.every((request) => request.model === "tiny" && request.api === "chat")).toBe(true);
  expect((await roundsOf(database.store, agent.id)).every((round) => round.status === "compacted")).toBe(
    true,
  );
});

it(
  "compaction switched off ends typed if a request does not fit, and writes no round",
  { tags: ["case-13"] },
  async () => {
    const agent = await startDirectAgent(database, answers(says("Done.")), {
      instructions: mixedText(9, 400),
      config: {
        contextWindow: 8_000,
        maxOutput: 1_000,
        context: { strategy: "reactive-overflow", options: { auto: false } },
      },
    });
    expect((await playLoop(agent)).status).toBe("ContextOverflow");
    expect(await roundsOf(database.store, agent.id)).toEqual([]);
    expect(agent.model.log).toEqual([]);
  },
);
