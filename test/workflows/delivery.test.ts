/** When a session's repository is cloned and its work delivered, and what of that may end a run. */
import { ApplicationFailure } from "@temporalio/common";
import { describe, expect, it } from "vitest";
import type { RunPolicy } from "../../activities/contract/run-policy.ts";
import { answered, bashCall } from "../support/fake-activities.ts";
import { play } from "../support/play-loop.ts";

const git = (more: Partial<NonNullable<RunPolicy["git"]>>): Partial<RunPolicy> => ({
  git: { branch: "longhaul/x", push: "end", pr: "none", ...more },
});
const BRANCH = "longhaul/x";

describe("a session on a repository", () => {
  it("clones before the first step, and delivers before the sandbox is closed", async () => {
    const policy = git({ fetch: true, pr: "draft" });
    const { fake } = await play({ steps: [answered([bashCall]), answered()], policy });
    expect(fake.requests.map(({ name }) => name)).toEqual([
      "openSession",
      "openSandbox",
      "fetchRepository",
      "modelStep",
      "runTool",
      "modelStep",
      "publish",
      "publish",
      "closeSandbox",
      "closeSession",
    ]);
    expect(fake.inputsOf("publish")).toEqual([
      { step: 2, kind: "push", end: true },
      { step: 2, kind: "pull-request", draft: true },
    ]);
  });

  it("asks for no pull request if the push was refused, and completes nevertheless", async () => {
    const publications = [{ outcome: "refused", branch: BRANCH, reason: "no" } as const];
    const { fake, value } = await play({ steps: [answered()], policy: git({ pr: "ready" }), publications });
    expect(value?.status).toBe("completed");
    expect(fake.inputsOf("publish")).toHaveLength(1);
  });

  it("completes if a delivery fails, and says why", async () => {
    const publish = () => Promise.reject(ApplicationFailure.nonRetryable("the disk is full", "Unexpected"));
    const { fake, value } = await play({ steps: [answered()], policy: git({}), activities: { publish } });
    expect(value?.status).toBe("completed");
    expect(fake.inputsOf("closeSession")).toMatchObject([{ notDelivered: "the disk is full" }]);
  });

  it("pushes while it works at most once a minute", async () => {
    const steps = [answered([bashCall]), answered([bashCall]), answered([bashCall]), answered()];
    const { fake } = await play({ steps, policy: git({ push: "saves" }) });
    expect(fake.inputsOf("publish")).toEqual([
      { step: 1, kind: "push" },
      { step: 4, kind: "push", end: true },
    ]);
  });

  it("delivers nothing unasked, nor what a failed run has done", async () => {
    const never = await play({ steps: [answered()], policy: git({ push: "never" }) });
    expect(never.fake.inputsOf("publish")).toEqual([]);
    const stuck = { steps: [answered([bashCall])], hashes: Array<string>(20).fill("same"), policy: git({}) };
    const { fake, failure } = await play(stuck);
    expect(failure?.cause?.type).toBe("Stuck");
    expect(fake.inputsOf("publish")).toEqual([]);
  });

  it("posts a review only of an answer, and pushes nothing", async () => {
    const policy = git({ push: "never", review: true });
    const { fake } = await play({ steps: [answered([bashCall]), answered()], policy });
    expect(fake.inputsOf("publish")).toEqual([{ step: 2, kind: "review" }]);
    const limited = await play({ steps: [answered([bashCall])], policy: { ...policy, maxSteps: 1 } });
    expect(limited.fake.inputsOf("publish")).toEqual([]);
    const publish = () => Promise.reject(ApplicationFailure.nonRetryable("it is away", "Unexpected"));
    const failed = await play({ steps: [answered()], policy, activities: { publish } });
    expect(failed.value?.status).toBe("completed");
    expect(failed.fake.inputsOf("closeSession")).toMatchObject([{ notDelivered: "it is away" }]);
  });

  it("delivers after its end without a step, and ends as it had", async () => {
    const outcome = { status: "failed", error: { type: "Stuck", message: "It was stuck." } } as const;
    const input = { deliver: { order: { push: true, pr: "none", branch: "other" }, outcome } } as const;
    const { fake, value } = await play({ steps: [], policy: git({ push: "never" }) }, undefined, input);
    expect(value?.status).toBe("failed");
    expect(fake.inputsOf("modelStep")).toEqual([]);
    expect(fake.inputsOf("publish")).toEqual([{ step: 0, kind: "push", end: true, branch: "other" }]);
    expect(fake.inputsOf("closeSession")).toMatchObject([outcome]);
  });
});
