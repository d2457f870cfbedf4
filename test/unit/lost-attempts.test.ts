/** What an attempt learns about earlier ones that were lost with their worker. */
import { MockActivityEnvironment } from "@temporalio/testing";
import { DefaultLogger } from "@temporalio/worker";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { inScope, type ActivityScope } from "../../activities/runtime/activity-scope.ts";
import { createSanitizer } from "../../activities/redaction/sanitizer.ts";
import {
  lossesBefore,
  NO_LOSSES,
  Suspects,
  type AttemptMark,
} from "../../activities/runtime/lost-attempts.ts";
import { retryable } from "../../activities/contract/failures.ts";
import { silentAnnouncements } from "../support/lone-deps.ts";

const mark = (attempt: number, changes: Partial<AttemptMark> = {}): AttemptMark => ({
  attempt,
  lifeMs: 300,
  losses: NO_LOSSES,
  state: "running",
  ...changes,
});

describe("losses before an attempt", () => {
  it("are none after a first attempt, whatever it left, and after one that ended in good order", () => {
    for (const details of [undefined, null, "asks for bash", {}, { attempt: 2 }])
      expect(lossesBefore(3, details)).toEqual(NO_LOSSES);
    expect(lossesBefore(3, mark(2, { state: "ended", losses: { quick: 1, total: 1 } }))).toEqual(NO_LOSSES);
  });

  it("are quick if the attempt was lost soon after it began, and restart at zero if it was not", () => {
    const losses = { quick: 1, total: 3 };
    expect(lossesBefore(5, mark(4, { losses }))).toEqual({ quick: 2, total: 4 });
    expect(lossesBefore(5, mark(4, { losses, lifeMs: 5_001 }))).toEqual({ quick: 0, total: 4 });
  });

  it("do not count attempts that began nothing: with a frozen worker, or before their turn", () => {
    expect(lossesBefore(5, mark(2))).toEqual({ quick: 1, total: 1 });
  });
});

/** Runs an attempt with the previous one's heartbeats. @returns what it did, and its heartbeats */
async function run(
  attempt: number,
  heartbeatDetails: unknown,
  body: (scope: ActivityScope) => Promise<unknown>,
  maxAttempts?: number,
) {
  const environment = new MockActivityEnvironment(
    { attempt, heartbeatDetails, activityType: "runTool" },
    { logger: new DefaultLogger("ERROR") },
  );
  const beats: unknown[] = [];
  environment.on("heartbeat", (details) => beats.push(details));
  const deps = {
    announcements: silentAnnouncements,
    suspects: new Suspects(),
    heartbeatMs: 60_000,
    sanitizer: createSanitizer([]),
    store: undefined as never,
  };
  const ended = await environment
    .run(() => inScope(deps, body, maxAttempts))
    .then(
      (value) => ({ value }),
      (error: unknown) => ({ error }),
    );
  return { ...ended, beats };
}

describe("an attempt", () => {
  it("that is the first sends nothing at its start or end", async () => {
    expect((await run(1, undefined, async () => "done")).beats).toEqual([]);
    expect((await run(1, undefined, () => Promise.reject(new Error("no")))).beats).toEqual([]);
  });

  it("that follows another reports that it runs, and when it failed in good order that it ended", async () => {
    expect((await run(2, undefined, async () => "done")).beats).toMatchObject([
      { attempt: 2, state: "running", losses: NO_LOSSES },
    ]);
    const { beats } = await run(2, undefined, () => Promise.reject(new Error("no")));
    expect(beats).toMatchObject([{ state: "running" }, { state: "ended" }]);
  });

  it("runs after one quick loss, and is refused after two or after many", async () => {
    const after = (losses: AttemptMark["losses"], lifeMs = 300) =>
      run(9, mark(8, { losses, lifeMs }), async () => "done");
    expect(await after(NO_LOSSES)).toMatchObject({ value: "done" });
    expect(await after({ quick: 0, total: 8 }, 60_000)).toMatchObject({ value: "done" });
    for (const refused of [await after({ quick: 1, total: 1 }), await after({ quick: 0, total: 9 }, 60_000)])
      expect(refused).toMatchObject({
        error: {
          type: "PoisonedSession",
          nonRetryable: true,
          message: expect.stringMatching(
            /workers in a row were lost while they ran it.*kept.*send a message/,
          ),
        },
      });
  });
});

describe("an activity that bounds its attempts", () => {
  const fails = () => Promise.reject(retryable("ModelUnavailable", "Away."));
  const waits = async (scope: ActivityScope) => {
    scope.waited();
    throw retryable("ModelThrottled", "Later.", { delayMs: 1_000 });
  };
  const final = { error: { nonRetryable: true } };

  it("ends with the last one's failure, and does nothing after timeouts", async () => {
    expect(await run(2, undefined, fails, 3)).toMatchObject({ error: { nonRetryable: false } });
    expect(await run(3, undefined, fails, 3)).toMatchObject({
      error: { type: "ModelUnavailable", message: "Away.", ...final.error },
    });
    expect(await run(3, undefined, () => Promise.reject(new Error("odd")), 3)).toMatchObject(final);
    expect(await run(4, undefined, async () => "done", 3)).toMatchObject(final);
  });

  it("does not count those that only waited, even if a worker was lost in between", async () => {
    let left: unknown;
    for (let attempt = 1; attempt <= 50; attempt += 1) {
      const { error, beats } = (await run(attempt, left, waits, 3)) as { error: unknown; beats: unknown[] };
      expect(error).toMatchObject({ type: "ModelThrottled", nonRetryable: false });
      left = beats.at(-1);
    }
    expect(left).toMatchObject({ attempt: 50, state: "ended", waits: 50 });
    const tries: number[] = [];
    await run(52, left, async (scope) => void tries.push(scope.tries, scope.attempt));
    expect(tries).toEqual([2, 52]);
    expect(await run(52, left, fails, 3)).toMatchObject({ error: { nonRetryable: false } });
    expect(await run(53, left, fails, 3)).toMatchObject(final);
  });
});

describe("suspects", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());
  const never = () => new Promise<never>(() => undefined);

  it("start one after the other: when the one before has ended, or has lived for a while", async () => {
    const suspects = new Suspects();
    const begun: string[] = [];
    const start = (name: string) => suspects.turn(never).then((end) => (begun.push(name), end));
    const first = await start("first");
    const second = start("second");
    const third = start("third");
    await vi.advanceTimersByTimeAsync(4_999);
    expect(begun).toEqual(["first"]);
    first();
    await second;
    expect(begun).toEqual(["first", "second"]);
    await vi.advanceTimersByTimeAsync(5_000);
    await third;
    expect(begun).toEqual(["first", "second", "third"]);
  });

  it("that are cancelled while they wait delay no one", async () => {
    const suspects = new Suspects();
    const end = await suspects.turn(never);
    await expect(suspects.turn(() => Promise.reject(new Error("cancelled")))).rejects.toThrow("cancelled");
    end();
    await suspects.turn(never);
  });
});
