/** A follower on a real Temporal server, with activities that answer from memory: what wakes it, what it starts, how it ends. */
import { Context } from "@temporalio/activity";
import { ApplicationFailure } from "@temporalio/common";
import { expect, it } from "vitest";
import { FOLLOW_SIGNALS } from "../../activities/contract/follow.ts";
import { eventually } from "../support/eventually.ts";
import { answered } from "../support/fake-activities.ts";
import { merged, playFollower, round, waits } from "../support/play-follower.ts";

const untilLooked = (done: readonly string[], times: number) =>
  eventually("it has looked", () => Promise.resolve(done.filter((one) => one === "look").length >= times));

it("looks when it is woken, and ends when it is merged", async () => {
  const { result, done } = await playFollower(
    (number) => (number === 1 ? waits("checks run") : merged),
    async (handle, all) => {
      await untilLooked(all, 1);
      await handle.signal(FOLLOW_SIGNALS.woken);
    },
  );
  expect(result).toEqual({ end: "merged", rounds: 0 });
  expect(done).toEqual(["open {}", "look", "look", "close merged", "follow:ended"]);
});

it("starts the session for a round, whose end has it look again", async () => {
  const { result, sessions } = await playFollower((number, sessionId) =>
    number === 1 ? round(sessionId) : merged,
  );
  expect(result).toEqual({ end: "merged", rounds: 1 });
  expect(sessions).toHaveLength(1);
});

it("tells a pause once, and goes on with what a person orders", async () => {
  const { done } = await playFollower(
    (number) => (number < 3 ? waits("its rounds are used", { isPaused: true }) : merged),
    async (handle, all) => {
      await untilLooked(all, 1);
      await handle.signal(FOLLOW_SIGNALS.woken);
      await untilLooked(all, 2);
      await handle.signal(FOLLOW_SIGNALS.goOn, { rounds: 2 });
    },
  );
  expect(done).toEqual([
    "open {}",
    "look",
    "follow:paused",
    "look",
    'open {"rounds":2}',
    "look",
    "close merged",
    "follow:ended",
  ]);
});

it("ends as stopped when it is cancelled, which a person wanted", async () => {
  const { result, done } = await playFollower(
    () => waits("it can be reviewed"),
    async (handle, all) => {
      await untilLooked(all, 1);
      await handle.cancel();
    },
  );
  expect(result).toEqual({ end: "stopped", rounds: 0 });
  expect(done.at(-2)).toBe("close stopped");
});

it("fails with the reason where there is nothing to follow, and stores no end", async () => {
  const refuse = () => {
    throw ApplicationFailure.nonRetryable("There is no pull request.", "BadConfiguration");
  };
  const { result, done } = await playFollower(() => merged, undefined, { open: refuse });
  expect(result).toMatchObject({ cause: { cause: { message: "There is no pull request." } } });
  expect(done).toEqual(["open {}"]);
});

it("stores that it is lost where no attempt can look any more", async () => {
  const { result, done } = await playFollower((number) => {
    if (number === 1) return { kind: "wait", lookMs: 1, line: "checks run" };
    throw ApplicationFailure.nonRetryable("The settings cannot be read.", "BadConfiguration");
  });
  expect(result).toMatchObject({ cause: { cause: { message: "The settings cannot be read." } } });
  expect(done.slice(-2)).toEqual(["close lost: The settings cannot be read.", "follow:ended"]);
});

it("goes on in a fresh history with its order and what people know", async () => {
  let all: readonly string[] = [];
  const { result, isContinued } = await playFollower(
    (number) => (number < 8 ? { kind: "wait", lookMs: 1, line: "paused", isPaused: true } : merged),
    (_handle, done) => Promise.resolve(void (all = done)),
    { input: { maxHistoryEvents: 30, order: { rounds: 3 } } },
  );
  expect(result).toEqual({ end: "merged", rounds: 0 });
  expect(isContinued).toBe(true);
  expect(all.filter((one) => one.startsWith("open"))).toEqual(['open {"rounds":3}']);
  expect(all.filter((one) => one === "follow:paused")).toHaveLength(1);
});

it("cancels the session's run, too, where a person has stopped both", async () => {
  const { result, outcomes } = await playFollower(
    (number, sessionId) =>
      number === 1
        ? round(sessionId)
        : { kind: "over", end: "stopped", line: "somebody has stopped it", stopsSession: sessionId },
    async (handle, all) => {
      await untilLooked(all, 1);
      await handle.signal(FOLLOW_SIGNALS.woken);
    },
    {
      step: async () => {
        await Context.current().cancelled;
        return answered([]);
      },
    },
  );
  expect(result).toEqual({ end: "stopped", rounds: 1 });
  expect(outcomes).toMatchObject([{ cause: { name: "CancelledFailure" } }]);
});

it("ends where the session that it is to stop has ended by itself", async () => {
  const { result } = await playFollower((number, sessionId) =>
    number === 1
      ? round(sessionId)
      : { kind: "over", end: "stopped", line: "somebody has stopped it", stopsSession: sessionId },
  );
  expect(result).toEqual({ end: "stopped", rounds: 1 });
});
