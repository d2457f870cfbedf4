import { Context } from "@temporalio/activity";
import { expect, it } from "vitest";
import type { AskedPerson } from "../../activities/contract/questions.ts";
import type { ModelStepFacts } from "../../activities/contract/activities.ts";
import { answered, bashCall } from "../support/fake-activities.ts";
import { play } from "../support/play-loop.ts";

/** Goes on until it is stopped. */
async function untilStopped(): Promise<ModelStepFacts> {
  const context = Context.current();
  const beat = setInterval(() => context.heartbeat(), 50);
  await context.cancelled.catch(() => undefined);
  clearInterval(beat);
  return { kind: "interrupted", context: { used: 1_000, estimated: true, prunable: 0 }, epoch: 1 };
}

it("stops the step in flight before the deadline, asks where things stand and ends in order", async () => {
  const { fake, value } = await play({
    steps: [answered([bashCall]), untilStopped, answered()],
    policy: { deadlineMs: 2_000, wrapUpMs: 60_000 },
  });
  expect(value?.status).toBe("max_steps");
  expect(fake.inputsOf("closeSession")).toMatchObject([{ status: "max_steps", limit: "deadline" }]);
  const steps = fake.inputsOf("modelStep");
  expect(steps.map(({ wrapUp }) => wrapUp ?? false)).toEqual([false, false, true]);
  expect(steps.at(-1)?.note).toMatchObject({ kind: "wrap-up", text: expect.stringContaining("deadline") });
  expect(fake.inputsOf("closeSandbox")).toHaveLength(1);
});

it("ends at the deadline if even the last answer does not come", async () => {
  const begun = performance.now();
  const { fake, value } = await play({
    steps: [untilStopped, untilStopped, answered()],
    policy: { deadlineMs: 2_000, wrapUpMs: 500 },
  });
  expect(value?.status).toBe("max_steps");
  expect(fake.inputsOf("modelStep")).toHaveLength(2);
  expect(performance.now() - begun).toBeGreaterThan(1_900);
});

it("does not wait for a person longer than its deadline", async () => {
  const question = { id: "s1c0", kind: "ask", text: "npm or pnpm?" } as const;
  const { fake, value } = await play({
    steps: [answered([{ name: "ask_user", about: question.text, by: "person" }]), answered()],
    policy: { deadlineMs: 2_000, wrapUpMs: 60_000 },
    activities: { askPerson: async (): Promise<AskedPerson> => ({ kind: "asked", question }) },
  });
  expect(value?.status).toBe("max_steps");
  expect(fake.inputsOf("settleQuestion")).toEqual([]);
  expect(fake.inputsOf("modelStep").map(({ wrapUp }) => wrapUp ?? false)).toEqual([false, true]);
  expect(fake.inputsOf("closeSession")).toMatchObject([{ limit: "deadline" }]);
});
