import { expect, it } from "vitest";
import type { AskedPerson } from "../../activities/contract/questions.ts";
import { answered, bashCall, interrupted, untilStopped } from "../support/fake-activities.ts";
import { play } from "../support/play-loop.ts";

const working = untilStopped(interrupted);

it("stops the step in flight before the deadline, asks where things stand and ends in order", async () => {
  const { fake, value } = await play({
    steps: [answered([bashCall]), working, answered()],
    policy: { deadline: { afterMs: 2_000, wrapUpMs: 60_000 } },
  });
  expect(value?.status).toBe("max_steps");
  expect(fake.inputsOf("closeSession")).toMatchObject([{ status: "max_steps", limit: "deadline" }]);
  expect(fake.wrapUps()).toEqual([false, false, true]);
  expect(fake.inputsOf("modelStep").at(-1)?.note).toMatchObject({
    kind: "wrap-up",
    text: expect.stringContaining("deadline"),
  });
  expect(fake.inputsOf("closeSandbox")).toHaveLength(1);
});

it("ends at the deadline if even the last answer does not come", async () => {
  const begun = performance.now();
  const { fake, value } = await play({
    steps: [working, working, answered()],
    policy: { deadline: { afterMs: 2_000, wrapUpMs: 500 } },
  });
  expect(value?.status).toBe("max_steps");
  expect(fake.inputsOf("modelStep")).toHaveLength(2);
  expect(performance.now() - begun).toBeGreaterThan(1_900);
});

it("does not wait for a person longer than its deadline", async () => {
  const question = { id: "s1c0", kind: "ask", text: "npm or pnpm?" } as const;
  const { fake, value } = await play({
    steps: [answered([{ name: "ask_user", about: question.text, by: "person" }]), answered()],
    policy: { deadline: { afterMs: 2_000, wrapUpMs: 60_000 } },
    activities: { askPerson: async (): Promise<AskedPerson> => ({ kind: "asked", question }) },
  });
  expect(value?.status).toBe("max_steps");
  expect(fake.inputsOf("settleQuestion")).toEqual([]);
  expect(fake.wrapUps()).toEqual([false, true]);
  expect(fake.inputsOf("closeSession")).toMatchObject([{ limit: "deadline" }]);
});
