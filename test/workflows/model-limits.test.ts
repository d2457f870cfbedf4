/** A limit of the model whose end is known: hours of it, with all times divided by one factor. */
import { expect, it } from "vitest";
import { budgetFor } from "../../activities/config/budget.ts";
import { answered, bashCall, compactedTo } from "../support/fake-activities.ts";
import { play } from "../support/play-loop.ts";
import { statusQuery } from "../../workflows/messages.ts";

/** Five hours become five seconds. */
const FACTOR = 3_600;
const FIVE_HOURS_MS = (5 * 3_600_000) / FACTOR;
const limited = { kind: "limited", waitMs: FIVE_HOURS_MS, epoch: 1 } as const;
const long = { ...limited, waitMs: 5 * 3_600_000 };

it("waits for the end of a five-hour limit with one timer, asking nothing, and goes on", async () => {
  const begun = performance.now();
  let until: string | undefined;
  const { fake, handle, value } = await play(
    { steps: [answered([bashCall]), limited, answered()] },
    async (session) => {
      await expect
        .poll(async () => (until = (await session.query(statusQuery)).waitsUntil), { timeout: 10_000 })
        .toBeDefined();
    },
  );
  expect(value?.status).toBe("completed");
  expect(fake.inputsOf("modelStep").map(({ step }) => step)).toEqual([1, 2, 2]);
  expect(performance.now() - begun).toBeGreaterThan(FIVE_HOURS_MS);
  expect(Date.parse(until ?? "")).toBeGreaterThan(0);
  const { events } = await handle.fetchHistory();
  expect(events?.filter(({ timerStartedEventAttributes: timer }) => timer)).toHaveLength(1);
});

it("asks at once after a message", async () => {
  const { fake, value } = await play({ steps: [long, answered()] }, async (session) => {
    await expect
      .poll(async () => (await session.query(statusQuery)).waitsUntil, { timeout: 10_000 })
      .toBeDefined();
    await session.signal("guidance", "The limit is over.");
  });
  expect(value?.status).toBe("completed");
  expect(fake.heardBy[1]).toHaveLength(1);
});

it("asks at once after an interrupt, and ends at once when it is cancelled", async () => {
  const { fake } = await play({ steps: [long, long] }, async (session, playing) => {
    const waits = async () => (await session.query(statusQuery)).waitsUntil;
    await expect.poll(waits, { timeout: 10_000 }).toBeDefined();
    await session.signal("interrupt");
    await expect.poll(() => playing.inputsOf("modelStep").length, { timeout: 10_000 }).toBe(2);
    await expect.poll(waits, { timeout: 10_000 }).toBeDefined();
    await session.cancel();
  });
  expect(fake.inputsOf("closeSession")).toMatchObject([{ status: "cancelled" }]);
});

it("gives the sandbox up during a long limit, and opens it again for the next step", async () => {
  const { fake, value } = await play(
    { steps: [answered([bashCall]), long, answered()], policy: { parkAfterMs: 1_000 } },
    async (session, playing) => {
      await expect.poll(() => playing.inputsOf("parkSandbox").length, { timeout: 10_000 }).toBe(1);
      await session.signal("guidance", "The limit is over.");
    },
  );
  expect(value?.status).toBe("completed");
  expect(fake.inputsOf("openSandbox")).toHaveLength(2);
});

it("waits no longer than its deadline", async () => {
  const { fake, value } = await play({
    steps: [long],
    policy: { deadline: { afterMs: 3_000, wrapUpMs: 1_000 } },
  });
  expect(value?.status).toBe("max_steps");
  expect(fake.inputsOf("closeSession")).toMatchObject([{ limit: "deadline" }]);
});

const full = { policy: { budget: budgetFor(128_000, { triggerRatio: 0.8 }) } };
const atTrigger = answered([bashCall], { used: 110_000 });
const limitedRound = {
  kind: "limited",
  waitMs: FIVE_HOURS_MS,
  context: { used: 110_000, estimated: true, prunable: 0 },
} as const;

it("waits in the same way for a limit that a compaction meets, and then makes the compaction", async () => {
  let until: string | undefined;
  const { fake, handle, value } = await play(
    { steps: [atTrigger, answered()], rounds: [limitedRound, compactedTo(1)], ...full },
    async (session) => {
      await expect
        .poll(async () => (until = (await session.query(statusQuery)).waitsUntil), { timeout: 10_000 })
        .toBeDefined();
    },
  );
  expect(value?.status).toBe("completed");
  expect(fake.inputsOf("summarize")).toMatchObject([
    { round: 1, waitsForLimits: true },
    { round: 1, waitsForLimits: true },
  ]);
  expect(fake.inputsOf("modelStep").map(({ step }) => step)).toEqual([1, 2]);
  expect(Date.parse(until ?? "")).toBeGreaterThan(0);
  const { events } = await handle.fetchHistory();
  expect(events?.filter(({ timerStartedEventAttributes: timer }) => timer)).toHaveLength(1);
});

it("makes a requested compaction when its limit is over, and leaves waiting to a fallback", async () => {
  const asked = { ...limitedRound, waitMs: 1_000 };
  const steps = [answered([bashCall]), answered()];
  const byPerson = await play({ steps, rounds: [asked, compactedTo(1)] }, async (session) => {
    await session.signal("compact", { focus: "the tests" });
  });
  expect(byPerson.fake.inputsOf("summarize")).toMatchObject([
    { trigger: "manual", focus: "the tests" },
    { trigger: "manual", focus: "the tests" },
  ]);
  const withFallback = { ...full.policy, fallbacks: { count: 1, returnAfterMs: 600_000 } };
  const { fake } = await play({ steps: [atTrigger, answered()], policy: withFallback });
  expect(fake.inputsOf("summarize")[0]).not.toHaveProperty("waitsForLimits");
});
