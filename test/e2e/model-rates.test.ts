/** A model's rate limits, over all sessions and workers. */
import { describe, expect, it, onTestFinished } from "vitest";
import { createActivities } from "../../activities/index.ts";
import type { ModelTarget } from "../../activities/config/model-target.ts";
import { openStore } from "../../activities/store/db.ts";
import { type AgentHarness, useAgent } from "../support/agent-harness.ts";
import { eventually } from "../support/eventually.ts";
import { startKillableSession } from "../support/killable-session.ts";
import { scriptedModel, text } from "../support/scripted-model.ts";
import { useDatabase } from "../support/test-database.ts";
import { createTestWorker } from "../support/test-worker.ts";
import { underPolicy } from "../support/operator-policy.ts";
import { playConnections } from "../support/play-loop.ts";
import { askedAs } from "../support/run-config.ts";

const agent = useAgent();
const database = useDatabase(20);

/** Another worker on the first one's queue, with its own connections. */
async function secondWorker({ deps, database: { url }, taskQueue }: AgentHarness): Promise<void> {
  const store = openStore({ url });
  const { native: connection } = await playConnections();
  const activities = createActivities({ ...deps, store });
  const worker = await createTestWorker({ taskQueue, connection, activities, identity: "second" });
  const running = worker.run();
  onTestFinished(async () => {
    worker.shutdown();
    await running;
    await store.close();
  });
}

/** A text of at least this many tokens. */
const words = (tokens: number) => "word ".repeat(tokens);

it(
  "two workers exceed the limit of tokens a minute by one request at most; all sessions end",
  { tags: ["T1"] },
  async () => {
    const tokensPerMinute = 50_000;
    const size = 10_000;
    await secondWorker(agent);
    const sessions = [];
    for (let request = 0; request < 8; request += 1)
      sessions.push(
        await agent.start(scriptedModel().says("Done."), {
          task: words(size),
          config: { model: "openai/gpt-4o", maxOutput: 1_000, rate: { tokensPerMinute } },
        }),
      );
    for (const session of sessions) expect((await session.result()).status).toBe("completed");
    const byMinute = new Map<number, number>();
    for (const { receivedAt, usage } of sessions.flatMap(({ model }) => model.log)) {
      const minute = Math.floor(receivedAt / 60_000);
      byMinute.set(minute, (byMinute.get(minute) ?? 0) + (usage?.input ?? 0) + (usage?.output ?? 0));
    }
    const used = [...byMinute.values()];
    expect(used.reduce((sum, tokens) => sum + tokens, 0)).toBeGreaterThan(8 * size);
    expect(byMinute.size).toBeGreaterThan(1);
    expect(Math.max(...used)).toBeLessThanOrEqual(tokensPerMinute + 2 * size);
    const waits = (await Promise.all(sessions.map((session) => session.events())))
      .flat()
      .filter(({ type }) => type === "llm:throttled");
    expect(waits.length).toBeGreaterThan(0);
    expect(waits[0]?.data).toMatchObject({ limit: "tokensPerMinute" });
    // The bills replaced the reservations.
    const { rows } = await agent.database.store.pool.query<{ tokens: string; requests: number }>(
      "select sum(tokens) as tokens, sum(requests)::int as requests from rate_windows",
    );
    expect(rows[0]).toEqual({ tokens: String(used.reduce((sum, tokens) => sum + tokens, 0)), requests: 8 });
  },
);

describe("requests at once", () => {
  const limited = { model: "openai/limited" };
  const served = { limited: { window: 128_000 }, other: { window: 64_000 } };

  it("never exceed the operator's limit; waiting sessions take no slot", { tags: ["T5"] }, async () => {
    underPolicy(agent, { rates: { "openai/limited": { concurrent: 2 } } });
    const go: (() => void)[] = [];
    let isOpen = false;
    const gate = () => (isOpen ? Promise.resolve() : new Promise<void>((resolve) => go.push(resolve)));
    const sessions = await Promise.all(
      [1, 2, 3, 4, 5].map(() =>
        agent.start(
          async () => {
            await gate();
            return { parts: [text("Done.")] };
          },
          // A client's file may lower the limit, and not raise it.
          { served, config: { ...limited, rate: { concurrent: 4 } } },
        ),
      ),
    );
    const waiting = async () => {
      const all = await Promise.all(sessions.map(async ({ handle }) => (await handle.describe()).raw));
      return all.flatMap(({ pendingActivities }) =>
        (pendingActivities ?? []).filter(
          ({ lastFailure, state }) =>
            lastFailure?.applicationFailureInfo?.type === "ModelThrottled" && state === 1,
        ),
      );
    };
    await eventually(
      "three wait, and none of them is at work",
      async () => (await waiting()).length === 3,
      60_000,
    );
    expect(sessions.flatMap(({ model }) => model.log)).toHaveLength(2);
    isOpen = true;
    for (const open of go) open();
    for (const session of sessions) expect((await session.result()).status).toBe("completed");
    const log = sessions.flatMap(({ model }) => model.log);
    for (const { receivedAt } of log)
      expect(
        log.filter((served) => served.receivedAt <= receivedAt && (served.endedAt ?? Infinity) > receivedAt)
          .length,
      ).toBeLessThanOrEqual(2);
  });

  it("that wait count neither as attempts nor towards the fallback model", async () => {
    const other: ModelTarget = {
      ...askedAs("openai/other"),
      contextWindow: 64_000,
      maxOutput: 4_000,
      api: "responses",
      input: ["text"],
    };
    await agent.database.store.pool.query(
      "insert into open_requests (session_id, key, minute, tokens, expires_at) values ('another-session', 'openai/limited OPENAI_API_KEY', 0, 0, now() + interval '12 seconds')",
    );
    const session = await agent.start(scriptedModel().says("By its own."), {
      served,
      config: { ...limited, rate: { concurrent: 1 }, fallback: [other] },
    });
    expect(await session.result()).toMatchObject({ status: "completed", result: "By its own." });
    const events = await session.events();
    expect(events.filter(({ type }) => type === "llm:throttled")).toHaveLength(1);
    expect(events.filter(({ type }) => type === "llm:switched")).toEqual([]);
    const { events: history } = await session.handle.fetchHistory();
    const attempts = (history ?? []).map((event) => event.activityTaskStartedEventAttributes?.attempt ?? 0);
    // More attempts than the fallback model needs.
    expect(Math.max(...attempts)).toBeGreaterThan(3);
  });

  it(
    "of a killed worker are released after a minute; no session waits forever",
    { tags: ["T4"] },
    async () => {
      const config = { rate: { concurrent: 1 } };
      const lost = await startKillableSession(
        database,
        scriptedModel()
          .answers(text("Never finished"), { type: "hang" })
          .forever({ parts: [text("Done.")] }),
        { config },
      );
      const worker = await lost.startWorker();
      await eventually("its request is open", () => lost.model.log.length === 1, 60_000);
      const next = await startKillableSession(database, scriptedModel(), { config, beside: lost });
      await next.until("llm:throttled");
      await worker.kill();
      await lost.handle.terminate("no one asks for it again");
      await lost.startWorker();
      expect(await next.handle.result()).toMatchObject({ status: "completed", result: "Done." });
    },
  );
});
