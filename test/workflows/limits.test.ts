/** At a limit if people are asked: the loop waits, continues by as much as was given, or ends. */
import { expect, it } from "vitest";
import type { AskBudgetInput } from "../../activities/contract/limits.ts";
import type { AskedBudget, SettleBudgetInput } from "../../activities/contract/questions.ts";
import type { SessionView } from "../../workflows/messages.ts";
import { eventually } from "../support/eventually.ts";
import { answered, bashCall } from "../support/fake-activities.ts";
import { play, type Handle } from "../support/play-loop.ts";

const OPTIONS = ["another 2 steps", "stop"];
const asked = async ({ step, limit, used, of }: AskBudgetInput): Promise<AskedBudget> => ({
  kind: "asked",
  question: { id: `s${step}${limit}`, kind: "budget", text: "May it go on?", options: OPTIONS },
  used,
  of,
});
const settled = async ({ used, settlement }: SettleBudgetInput) =>
  settlement.how === "answered" && settlement.text !== "stop" ? { of: used + 2 } : {};
const activities = { askBudget: asked, settleBudget: settled };
const options = {
  steps: [answered([bashCall])],
  maxSteps: 2,
  policy: { asks: { atLimit: true } },
  activities,
};

const untilAsked = (handle: Handle, id: string) =>
  eventually(`${id} is open`, async () => {
    const { questions } = await handle.query<SessionView>("status");
    return questions.some((question) => question.id === id);
  });

it("continues by as many steps as were given, and asks again at the next limit", async () => {
  const { fake, value } = await play(options, async (handle) => {
    await untilAsked(handle, "s3steps");
    await eventually(
      "it waits",
      async () => (await handle.query<SessionView>("status")).status === "waiting",
    );
    await handle.signal("answer", { option: 1 });
    await untilAsked(handle, "s5steps");
    expect(await handle.query<SessionView>("status")).toMatchObject({ maxSteps: 4, step: 4 });
    await handle.signal("answer", "stop");
  });
  expect(value?.status).toBe("max_steps");
  expect(fake.wrapUps()).toEqual([false, false, false, false, true]);
  const [waiting] = fake.inputsOf("markWaiting");
  expect(waiting).toMatchObject({ step: 2, budget: { step: 3, id: "s3steps", used: 2, of: 2, offer: 2 } });
});

it("goes on by itself when a budget begins anew, without an answer", async () => {
  const overBudget = {
    kind: "over-budget",
    reason: "The budget is used up.",
    epoch: 1,
    asks: {
      limit: "budget",
      used: 1,
      of: 1,
      offer: 1,
      budget: {
        scope: "all, day",
        window: "all, day, 2026-11-26",
        before: "2026-11-27",
        nextUsd: 1,
      },
    },
  } as const;
  const asks: AskBudgetInput[] = [];
  const { fake, value } = await play({
    ...options,
    maxSteps: 9,
    steps: [answered([bashCall]), overBudget, answered()],
    activities: {
      ...activities,
      askBudget: async (input) => {
        asks.push(input);
        const reply = await asked(input);
        return reply.kind === "asked"
          ? { ...reply, question: { ...reply.question, expiresInMs: 300 } }
          : reply;
      },
    },
  });
  expect(value?.status).toBe("completed");
  expect(asks).toMatchObject([{ limit: "budget", step: 2, used: 1, of: 1, budget: { scope: "all, day" } }]);
  expect(fake.inputsOf("modelStep").map(({ step }) => step)).toEqual([1, 2, 2]);
});

it("keeps what was given over continue-as-new", async () => {
  const { fake, value } = await play(
    { ...options, maxHistoryEvents: 50, steps: [answered([bashCall])], policy: { asks: { atLimit: true } } },
    async (handle) => {
      for (const id of ["s3steps", "s5steps", "s7steps", "s9steps"]) {
        await untilAsked(handle, id);
        await handle.signal("answer", { question: id, option: id === "s9steps" ? 2 : 1 });
      }
    },
  );
  expect(value?.status).toBe("max_steps");
  expect(fake.inputsOf("openSession").length).toBeGreaterThan(1);
  expect(fake.inputsOf("modelStep")).toHaveLength(9);
});

it("stays open for a message, which grants nothing and is read by the next step", async () => {
  const { fake, value } = await play(options, async (handle) => {
    await untilAsked(handle, "s3steps");
    await handle.signal("guidance", { id: "m1", text: "use npm" });
    await handle.signal("interrupt");
    const { questions, queue } = await handle.query<SessionView>("status");
    expect([questions.map(({ id }) => id), queue.map(({ id }) => id)]).toEqual([["s3steps"], ["m1"]]);
    await handle.signal("answer", { option: 2 });
  });
  expect(value?.status).toBe("max_steps");
  const last = fake.inputsOf("modelStep").at(-1);
  expect(last).toMatchObject({ wrapUp: true });
  expect(fake.heardBy.at(-1)).toEqual(["m1"]);
});

it("is withdrawn by the deadline, which ends the run, and by a cancel", async () => {
  const settlements: unknown[] = [];
  const settleBudget = async (input: SettleBudgetInput) => {
    settlements.push(input.settlement);
    return {};
  };
  const over = await play({
    ...options,
    // Long enough for two steps and the question on a busy machine.
    policy: { asks: { atLimit: true }, deadline: { afterMs: 8_000, wrapUpMs: 60_000 } },
    activities: { askBudget: asked, settleBudget },
  });
  expect(settlements).toEqual([{ how: "withdrawn", why: "stopped" }]);
  expect(over.fake.inputsOf("closeSession")).toMatchObject([{ status: "max_steps", limit: "deadline" }]);

  const cancelled = await play(options, async (handle) => {
    await untilAsked(handle, "s3steps");
    await handle.cancel();
  });
  expect(cancelled.value).toBeUndefined();
  expect(cancelled.fake.inputsOf("closeSession")).toMatchObject([{ status: "cancelled" }]);
  expect(cancelled.fake.inputsOf("modelStep")).toHaveLength(2);
});

it("asks no one without such a policy, or if nothing more may be given", async () => {
  const without = await play({ ...options, policy: {} });
  expect(without.value?.status).toBe("max_steps");
  expect(without.fake.inputsOf("askBudget")).toEqual([]);
  const passed = await play({ ...options, activities: {} });
  expect(passed.value?.status).toBe("max_steps");
  expect(passed.fake.inputsOf("askBudget")).toHaveLength(1);
});
