/** What follows from a look at a followed pull request: the table, case by case. */
import { describe, expect, it } from "vitest";
import { followSchema, type FollowSettings } from "../../../activities/config/follow-settings.ts";
import type { SpokenComment } from "../../../activities/follow/conversation.ts";
import {
  BRAKED,
  countingChecks,
  decide,
  heldChecks,
  lookAfterMs,
  type SeenPullRequest,
  type SeenCheck,
  type Standing,
  type ToldRound,
} from "../../../activities/follow/verdict.ts";
import type { ThreadFacts } from "../../../activities/forge/facts.ts";

const MINUTE_MS = 60_000;
const settings = (some: Partial<FollowSettings> = {}) => ({ ...followSchema.parse({}), ...some });

const check = (state: SeenCheck["state"], more: Partial<SeenCheck> = {}): SeenCheck => ({
  name: "test",
  state,
  isRequired: undefined,
  url: undefined,
  job: undefined,
  ...more,
});

const thread = (id = "T1"): ThreadFacts => ({
  id,
  path: "src/date.ts",
  line: 3,
  isResolved: false,
  isOutdated: false,
  comments: [{ id: 7, author: { id: 1, login: "ann" }, text: "why?", changedAt: "2026-11-27T08:00:00Z" }],
});

const seen = (some: Partial<SeenPullRequest> = {}): SeenPullRequest => ({
  pullRequest: { state: "open", isDraft: false, labels: [] },
  head: "a".repeat(40),
  headIs: "ours",
  checks: [],
  threads: [],
  changesWantedBy: [],
  spoken: [],
  openThreads: 0,
  isOutdated: false,
  base: "b".repeat(40),
  conflicts: [],
  ...some,
});

const standing = (some: Partial<Standing> = {}): Standing => ({
  nowMs: 0,
  isPaused: false,
  isBraked: false,
  calls: 0,
  roundHead: undefined,
  works: false,
  isOwnDraft: false,
  rounds: [],
  roundsUpTo: 5,
  untilMs: 86_400_000,
  spentUsd: 0,
  maxCostUsd: 10,
  quietMs: 10 * MINUTE_MS,
  ...some,
});

const round = (some: Partial<ToldRound> = {}): ToldRound => ({
  digest: "other",
  head: "a".repeat(40),
  signatures: [],
  pushed: "c".repeat(40),
  outcome: "completed",
  ...some,
});

const failing = seen({ checks: [check("failed", { signature: "test: boom" })] });
const verdict = (look: SeenPullRequest, at: Standing = standing(), how = settings()) => decide(look, at, how);

describe("the first line that applies counts", () => {
  it.each(["merged", "closed"] as const)("%s is the end, whatever else there is", (state) => {
    const look = { ...failing, headIs: "rewritten" as const };
    expect(verdict({ ...look, pullRequest: { ...look.pullRequest, state } })).toEqual({
      kind: "over",
      end: state,
    });
  });

  it("a label stops it", () => {
    const pullRequest = { state: "open" as const, isDraft: false, labels: ["longhaul:stop"] };
    expect(verdict({ ...failing, pullRequest })).toEqual({ kind: "over", end: "stopped" });
  });

  it("checks of what was there before our push are nothing", () => {
    expect(verdict({ ...failing, headIs: "stale" })).toMatchObject({ kind: "wait", for: "push" });
  });

  it.each(["on-top", "rewritten", "gone"] as const)("a head that is %s is not worked on", (headIs) => {
    expect(verdict({ ...failing, headIs })).toEqual({ kind: "foreign", head: headIs });
  });

  it("commits on top of ours are worked on if that is wanted, rewritten ones never", () => {
    const merges = settings({ onForeignPush: "merge" });
    expect(verdict({ ...failing, headIs: "on-top" }, standing(), merges)).toMatchObject({ kind: "round" });
    expect(verdict({ ...failing, headIs: "rewritten" }, standing(), merges)).toMatchObject({
      kind: "foreign",
    });
  });

  it.each([
    ["the session works", {}, { works: true }, "session"],
    ["it is in the merge queue", { isQueued: true }, {}, "people"],
    ["a person made it a draft", { isDraft: true }, {}, "people"],
    ["it is paused", {}, { isPaused: true }, "people"],
  ] as const)("nothing is told while %s", (_what, pull, at, waitsFor) => {
    const look = { ...failing, pullRequest: { ...failing.pullRequest, ...pull } };
    expect(verdict(look, standing(at))).toMatchObject({ kind: "wait", for: waitsFor });
  });

  it("its own draft is worked on", () => {
    const look = { ...failing, pullRequest: { ...failing.pullRequest, isDraft: true } };
    expect(verdict(look, standing({ isOwnDraft: true }))).toMatchObject({ kind: "round" });
  });
});

describe("a round", () => {
  it("has everything that is wrong", () => {
    const look = seen({
      checks: [check("failed"), check("failed", { name: "lint" })],
      threads: [thread()],
      changesWantedBy: [{ login: "ann", mark: "review 1" }],
      conflicts: ["src/date.ts"],
    });
    const told = verdict(look);
    expect(told.kind === "round" && told.reasons.map(({ kind }) => kind)).toEqual([
      "check",
      "check",
      "thread",
      "changes",
      "conflict",
    ]);
  });

  it("waits until nothing has changed for a while", () => {
    expect(verdict(failing, standing({ quietMs: 89_000 }))).toMatchObject({ kind: "wait", for: "quiet" });
    expect(verdict(failing, standing({ quietMs: 90_000 }))).toMatchObject({ kind: "round" });
  });

  it("waits for checks that run, and with a review for ten minutes at most", () => {
    const running = seen({ checks: [check("failed"), check("running", { name: "slow" })] });
    expect(verdict(running, standing({ quietMs: 60 * MINUTE_MS }))).toMatchObject({ for: "checks" });
    const reviewed = { ...running, threads: [thread()] };
    expect(verdict(reviewed, standing({ quietMs: 9 * MINUTE_MS }))).toMatchObject({ for: "checks" });
    expect(verdict(reviewed, standing({ quietMs: 10 * MINUTE_MS }))).toMatchObject({ kind: "round" });
  });

  it("is not made of what fails on the base, is held, was stopped or is good", () => {
    const checks = [
      check("failed", { isOfBase: true }),
      check("held"),
      check("stopped", { isRequired: true }),
      check("good"),
      check("missing", { isRequired: true }),
    ];
    expect(verdict(seen({ checks }), standing(), settings({ checks: "all" }))).toMatchObject({
      kind: "wait",
      for: "people",
    });
    expect(heldChecks(checks)).toHaveLength(2);
  });

  it("is not made of conflicts that are not known", () => {
    expect(verdict(seen({ conflicts: undefined }))).toMatchObject({ kind: "wait" });
  });
});

describe("which checks count", () => {
  const checks = [check("failed", { name: "lint", isRequired: false }), check("good", { isRequired: true })];

  it("those that the branch requires; all if it requires none, or is silent; or as set", () => {
    expect(countingChecks(checks, "required").map(({ name }) => name)).toEqual(["test"]);
    expect(countingChecks([check("failed", { isRequired: false })], "required")).toHaveLength(1);
    expect(countingChecks([check("failed")], "required")).toHaveLength(1);
    expect(countingChecks(checks, "all")).toHaveLength(2);
    expect(countingChecks(checks, "none")).toEqual([]);
    expect(verdict(seen({ checks }))).toMatchObject({ kind: "wait", line: "its checks are green" });
  });
});

describe("it is paused", () => {
  const told = verdict(failing);
  const digest = told.kind === "round" ? told.digest : "";

  it("if the last round ended without a push and nothing has changed", () => {
    const rounds = [round({ digest, pushed: null })];
    expect(verdict(failing, standing({ rounds }))).toMatchObject({
      kind: "pause",
      reason: expect.stringContaining("without a push"),
    });
    // What is told differs by the commit.
    expect(verdict({ ...failing, head: "d".repeat(40) }, standing({ rounds }))).toMatchObject({
      kind: "round",
    });
  });

  it("at the same failure for the third time, and a second one counts twice", () => {
    const same = () => round({ signatures: ["test: boom"] });
    expect(verdict(failing, standing({ rounds: [same(), same()] }))).toMatchObject({
      kind: "pause",
      reason: expect.stringContaining("third time"),
    });
    const other = seen({ checks: [check("failed", { signature: "test: another" })] });
    const used = [same(), same()];
    expect(verdict(other, standing({ rounds: used, roundsUpTo: 3 }))).toMatchObject({
      kind: "pause",
      reason: "its 3 rounds are used",
    });
    expect(verdict(other, standing({ rounds: used, roundsUpTo: 4 }))).toMatchObject({ kind: "round" });
  });

  it.each([
    ["rounds", { rounds: [round(), round()], roundsUpTo: 2 }, "its 2 rounds are used"],
    ["days", { nowMs: 86_400_000 }, "its days are over"],
    ["money", { spentUsd: 10 }, "its rounds have cost 10.00 USD"],
    [
      "a run that failed",
      { rounds: [round({ outcome: "failed" })] },
      "the session's run in the last round ended as failed",
    ],
  ])("at its bound: %s", (_what, at, reason) => {
    expect(verdict(failing, standing(at))).toEqual({ kind: "pause", reason });
  });

  it("checks that run use no round", () => {
    const rounds = [round(), round()];
    const look = seen({ checks: [check("running")] });
    expect(verdict(look, standing({ rounds, roundsUpTo: 2 }))).toMatchObject({ for: "checks" });
  });
});

describe("the next look", () => {
  const after = (look: SeenPullRequest, quietLooks: number) =>
    lookAfterMs(verdict(look), { quietLooks, quietMs: 0, settleMs: 90_000 });

  it("comes later and later: every 15 minutes while checks run, every 6 hours for people", () => {
    const running = seen({ checks: [check("running")] });
    expect([0, 1, 2, 5, 40].map((looks) => after(running, looks) / MINUTE_MS)).toEqual([0.5, 1, 2, 15, 15]);
    expect([0, 1, 2, 5, 40].map((looks) => after(seen(), looks) / MINUTE_MS)).toEqual([15, 30, 60, 360, 360]);
  });

  it("is at most six times on a quiet day", () => {
    let elapsedMs = 24 * 60 * MINUTE_MS;
    let looks = 8;
    let count = 0;
    while (elapsedMs > 0) {
      elapsedMs -= after(seen(), looks);
      looks += 1;
      count += 1;
    }
    expect(count).toBeLessThanOrEqual(6);
  });

  it("is when nothing may have changed for long enough", () => {
    const at = { quietLooks: 0, quietMs: 60_000, settleMs: 90_000 };
    expect(lookAfterMs(verdict(failing, standing({ quietMs: 60_000 })), at)).toBe(30_000);
  });
});

describe("a comment to the agent", () => {
  const comment = (wants: SpokenComment["wants"] = "message", id = 3): SpokenComment => ({
    id,
    author: { id: 1, login: "ann" },
    text: "@longhaul rename it",
    changedAt: "2026-11-27T08:00:00Z",
    wants,
  });
  const called = (...wants: readonly SpokenComment["wants"][]) =>
    seen({ spoken: wants.map((one, index) => comment(one, index + 1)) });

  it("is a reason of a round, beside what is wrong", () => {
    const told = verdict({ ...called("message"), checks: [check("failed")] });
    expect(told.kind === "round" && told.reasons.map(({ kind }) => kind)).toEqual(["check", "mention"]);
  });

  it("waits until nothing has changed, and for checks ten minutes at most", () => {
    expect(verdict(called("message"), standing({ quietMs: 1_000 }))).toMatchObject({ for: "quiet" });
    const running = { ...called("message"), checks: [check("running")] };
    expect(verdict(running, standing({ quietMs: 5 * MINUTE_MS }))).toMatchObject({ for: "checks" });
    expect(verdict(running)).toMatchObject({ kind: "round" });
  });

  it("sends the session on top of a person's commits and into a draft, not into rewritten ones", () => {
    expect(verdict({ ...called("message"), headIs: "on-top" })).toMatchObject({ kind: "round" });
    const pullRequest = { state: "open" as const, isDraft: true, labels: [] };
    expect(verdict({ ...called("message"), pullRequest })).toMatchObject({ kind: "round" });
    for (const headIs of ["rewritten", "gone"] as const)
      expect(verdict({ ...called("message"), headIs })).toEqual({ kind: "foreign", head: headIs });
  });

  it("is worked on without a word about the commits that it was sent on top of", () => {
    const at = standing({ works: true, roundHead: "a".repeat(40) });
    expect(verdict(seen({ headIs: "on-top" }), at)).toMatchObject({ for: "session" });
    const another = standing({ works: true, roundHead: "d".repeat(40) });
    expect(verdict(seen({ headIs: "on-top" }), another)).toMatchObject({ kind: "foreign" });
  });

  it.each([
    ["a pause", { isPaused: true }],
    ["used rounds", { rounds: [round(), round()], roundsUpTo: 2 }],
    ["a run that failed", { rounds: [round({ outcome: "failed" })] }],
    ["days that are over", { nowMs: 86_400_000 }],
    ["money that is spent", { spentUsd: 10 }],
  ])("goes on after %s", (_what, at) => {
    expect(verdict(called("message"), standing(at))).toEqual({ kind: "go-on" });
    expect(verdict(called("continue"), standing(at))).toEqual({ kind: "go-on" });
  });

  it("brakes where two programs call each other, until somebody says that it goes on", () => {
    const often = standing({ calls: 20 });
    expect(verdict(called("message"), often)).toEqual({ kind: "pause", reason: BRAKED });
    expect(verdict(called("message"), standing({ isPaused: true, isBraked: true }))).toMatchObject({
      kind: "wait",
      for: "people",
    });
    const braked = standing({ calls: 20, isPaused: true, isBraked: true });
    expect(verdict(called("message", "continue"), braked)).toEqual({ kind: "go-on" });
  });

  it.each(["stop", "forget"] as const)("ends it whatever there is: %s", (wants) => {
    const look = { ...called("message", wants), headIs: "stale" as const, checks: [check("failed")] };
    for (const at of [standing(), standing({ works: true }), standing({ isPaused: true })])
      expect(verdict(look, at)).toMatchObject({ kind: "over", end: "stopped", command: { wants } });
  });

  it("that stops counts before one that only forgets; a merge before both", () => {
    const look = called("forget", "stop");
    expect(verdict(look)).toMatchObject({ command: { wants: "stop" } });
    const pullRequest = { state: "merged" as const, isDraft: false, labels: [] };
    expect(verdict({ ...look, pullRequest })).toEqual({ kind: "over", end: "merged" });
  });
});

describe("what the worker does by itself", () => {
  const draft = (some: Partial<SeenPullRequest> = {}) =>
    seen({ pullRequest: { state: "open", isDraft: true, labels: [] }, checks: [check("good")], ...some });
  const own = standing({ isOwnDraft: true });
  const ready = settings({ ready: true });

  it("makes the session's own draft ready once it is green and no thread is open", () => {
    expect(verdict(draft(), own, ready)).toEqual({ kind: "ready" });
    expect(verdict(draft(), standing({ isOwnDraft: true, quietMs: 1 }), ready)).toMatchObject({
      for: "quiet",
    });
    expect(verdict(draft(), own)).toMatchObject({ kind: "wait", for: "people" });
    expect(verdict(draft({ openThreads: 1 }), own, ready)).toMatchObject({ kind: "wait" });
    expect(verdict(seen(), own, ready)).toMatchObject({ kind: "wait" });
  });

  it.each(["running", "held", "stopped", "missing", "failed"] as const)(
    "makes nothing ready with a check that is %s",
    (state) => {
      expect(verdict(draft({ checks: [check(state, { isOfBase: true })] }), own, ready).kind).not.toBe(
        "ready",
      );
    },
  );

  it("leaves a draft that a person has made", () => {
    expect(verdict(draft(), standing(), ready)).toMatchObject({ for: "people" });
  });

  it("merges the base where its rules demand that, and only if it is wanted", () => {
    const required = settings({ update: "required" });
    const behind = seen({ isOutdated: true });
    expect(verdict(behind, standing(), required)).toEqual({ kind: "update" });
    expect(verdict(behind)).toMatchObject({ kind: "wait" });
    expect(verdict(seen(), standing(), required)).toMatchObject({ kind: "wait" });
    expect(verdict(behind, standing({ nowMs: 86_400_000 }), required)).toMatchObject({ kind: "pause" });
    expect(verdict(behind, standing({ isPaused: true }), required)).toMatchObject({ kind: "wait" });
    expect(verdict({ ...behind, checks: [check("failed")] }, standing(), required)).toMatchObject({
      kind: "round",
    });
  });

  it("tells no conflict if the base is not looked at", () => {
    const look = seen({ conflicts: ["src/date.ts"] });
    expect(verdict(look)).toMatchObject({ kind: "round" });
    expect(verdict(look, standing(), settings({ update: "never" }))).toMatchObject({ kind: "wait" });
  });
});
