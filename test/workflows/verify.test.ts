/** When the work is verified, how often, and what follows from it. */
import { expect, it } from "vitest";
import type { RunPolicy } from "../../activities/contract/run-policy.ts";
import type { VerifiedWork } from "../../activities/contract/verify.ts";
import { answered, bashCall, interrupted, untilStopped } from "../support/fake-activities.ts";
import { play } from "../support/play-loop.ts";

const policy = (more: Partial<NonNullable<RunPolicy["verify"]>> = {}, pr: "none" | "ready" = "ready") =>
  ({
    verify: { rounds: 2, timeoutMs: 1_000, ...more },
    git: { branch: "longhaul/x", push: "end", pr },
  }) satisfies Partial<RunPolicy>;
const passed: VerifiedWork = { outcome: "passed", tree: "t9" };
const failed = (tree: string, goesOn?: true): VerifiedWork => ({
  outcome: "failed",
  tree,
  signature: "s",
  reason: "npm test (exit code 1)",
  goesOn,
});

it("is verified after the answer, and the verified files are delivered", async () => {
  const { fake, value } = await play({
    steps: [answered([bashCall]), answered()],
    policy: policy(),
    verified: [passed],
  });
  expect(fake.requests.map(({ name }) => name).slice(-5)).toEqual([
    "verifyWork",
    "publish",
    "publish",
    "closeSandbox",
    "closeSession",
  ]);
  expect(fake.inputsOf("verifyWork")).toEqual([{ step: 2, round: 0 }]);
  expect(fake.inputsOf("publish")).toEqual([
    { step: 2, kind: "push", end: true, tree: "t9" },
    { step: 2, kind: "pull-request" },
  ]);
  expect(fake.inputsOf("closeSession")).toMatchObject([{ status: "completed", verified: "passed" }]);
  expect(value?.status).toBe("completed");
});

it("is looked at before the first step if that is wanted, and that is no outcome", async () => {
  const { fake } = await play({
    steps: [answered([bashCall]), answered()],
    policy: policy({ baseline: true }),
    verified: [failed("a"), passed],
  });
  expect(fake.requests.map(({ name }) => name).indexOf("verifyWork")).toBeLessThan(
    fake.requests.map(({ name }) => name).indexOf("modelStep"),
  );
  expect(fake.inputsOf("verifyWork")).toEqual([
    { step: 0, round: 0, isLast: true, baseline: true },
    { step: 2, round: 0 },
  ]);
  expect(fake.inputsOf("closeSession")).toMatchObject([{ verified: "passed" }]);
});

it("goes on for its rounds, each with what the one before saw, and delivers a draft", async () => {
  const verified = [failed("a", true), failed("b", true), failed("c")];
  const { fake } = await play({ steps: [answered()], policy: policy(), verified });
  expect(fake.inputsOf("verifyWork")).toEqual([
    { step: 1, round: 0 },
    { step: 2, round: 1, before: { tree: "a", signature: "s" } },
    { step: 3, round: 2, isLast: true, before: { tree: "b", signature: "s" } },
  ]);
  expect(fake.inputsOf("publish")).toEqual([
    { step: 3, kind: "push", end: true },
    { step: 3, kind: "pull-request", draft: true },
  ]);
  expect(fake.inputsOf("closeSession")).toMatchObject([{ verified: "failed" }]);
});

it.each([
  ["failed work", { holds: true } as const, failed("a")],
  [
    "changed checks",
    { refusesChangedChecks: true } as const,
    { ...passed, outcome: "changed-checks", reason: "test/a" } as const,
  ],
])("holds %s back, and says why", async (_what, more, seen) => {
  const { fake } = await play({ steps: [answered()], policy: policy(more), verified: [seen] });
  expect(fake.inputsOf("publish")).toEqual([]);
  expect(fake.inputsOf("closeSession")).toMatchObject([
    { notDelivered: `its work is not verified: ${seen.reason}`, verified: seen.outcome },
  ]);
});

it("has no round left at a limit of steps", async () => {
  const more = { ...policy(), maxSteps: 1 };
  const { fake, value } = await play({
    steps: [answered([bashCall]), answered()],
    policy: more,
    verified: [failed("a")],
  });
  expect(value?.status).toBe("max_steps");
  expect(fake.inputsOf("verifyWork")).toEqual([{ step: 2, round: 0, isLast: true }]);
});

it.each([
  ["in its last answer", answered(), [failed("a", true), failed("b")], 2],
  ["before any answer", untilStopped(interrupted), [failed("a", true)], 1],
])("keeps what it saw if the deadline ends a round, %s", async (_when, last, verified, looks) => {
  const working = untilStopped(interrupted);
  const { fake } = await play({
    steps: [answered(), working, last],
    policy: { ...policy(), deadline: { afterMs: 4_000, wrapUpMs: 1_000 } },
    verified,
  });
  expect(fake.inputsOf("verifyWork")).toHaveLength(looks);
  expect(fake.inputsOf("closeSession")).toMatchObject([
    { status: "max_steps", limit: "deadline", verified: "failed" },
  ]);
});

it("counts its rounds on when it continues as new", async () => {
  const verified = [failed("a", true), failed("b", true), failed("c")];
  const { fake } = await play({
    steps: [answered()],
    policy: { ...policy(), maxHistoryEvents: 10 },
    verified,
  });
  expect(fake.inputsOf("openSession").length).toBeGreaterThan(1);
  expect(fake.inputsOf("verifyWork")).toMatchObject([{ round: 0 }, { round: 1 }, { round: 2, isLast: true }]);
});

it("does nothing in a session without commands", async () => {
  const { fake } = await play({ steps: [answered()] });
  expect(fake.inputsOf("verifyWork")).toEqual([]);
});
