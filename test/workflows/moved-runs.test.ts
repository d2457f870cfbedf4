/** A run that continues the questions of one that left for another version of the workers. */
import { expect, it } from "vitest";
import { answerQuestionUpdate } from "../../workflows/messages.ts";
import type { CarriedState } from "../../workflows/run-input.ts";
import { carry, createState } from "../../workflows/agent-state.ts";
import { answered, fakeActivities } from "../support/fake-activities.ts";
import { play, type PlayOptions } from "../support/play-loop.ts";

const call = { name: "ask_user", about: "Which?", by: "person" } as const;
const asked: Partial<NonNullable<PlayOptions["activities"]>> = {
  askPerson: async ({ step, index }) => ({
    kind: "asked",
    question: { id: `s${step}c${index}`, kind: "ask", text: "Which?" },
  }),
  settleQuestion: async () => ({
    kind: "result",
    facts: { outcome: "completed", tokens: 1, ms: 0, hash: "answer" },
  }),
};
const carried = (interrupting?: boolean): CarriedState => ({
  ...carry({ ...createState({}), step: 1, steps: 1 }),
  waitingCalls: [{ call, index: 0, asked: {} }],
  ...(interrupting === undefined ? {} : { interrupting }),
});

it("does what an interrupt was for that came while the run before moved", async () => {
  const { fake, value } = await play({ steps: [answered()], activities: asked }, undefined, {
    carried: carried(true),
  });
  expect(value?.status).toBe("completed");
  expect(fake.inputsOf("modelStep")).toMatchObject([{ step: 2 }]);
});

it("does what an interrupt is for that comes before its session is open", async () => {
  let open: () => void = () => undefined;
  const isOpened = new Promise<void>((resolve) => (open = resolve));
  const { activities: usual } = fakeActivities({ steps: [answered()] });
  const { fake, value } = await play(
    {
      steps: [answered()],
      activities: {
        ...asked,
        openSession: async (input) => {
          await isOpened;
          return usual.openSession(input);
        },
      },
    },
    async (handle) => {
      await handle.signal("interrupt");
      open();
    },
    { carried: carried(false) },
  );
  expect(value?.status).toBe("completed");
  expect(fake.inputsOf("modelStep")).toMatchObject([{ step: 2 }]);
});

it("waits for its answer if no one interrupted it, also after what an older run carried", async () => {
  for (const interrupting of [false, undefined]) {
    const played = await play(
      { steps: [answered()], activities: asked },
      async (handle, fake) => {
        const reply = await handle.executeUpdate(answerQuestionUpdate, { args: [{ text: "This." }] });
        expect(reply).toEqual({ question: "s1c0" });
        expect(fake.inputsOf("modelStep")).toEqual([]);
      },
      { carried: carried(interrupting) },
    );
    expect(played.value?.status).toBe("completed");
    expect(played.fake.inputsOf("modelStep")).toMatchObject([{ step: 2 }]);
  }
});
