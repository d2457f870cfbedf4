import { ApplicationFailure } from "@temporalio/common";
import { describe, expect, it } from "vitest";
import type { ModelStepFacts } from "../../activities/contract/activities.ts";
import { answered, bashCall, compactedTo, empty, type FakeActivities } from "../support/fake-activities.ts";
import { play } from "../support/play-loop.ts";

/** Its activities in order. */
const sequence = (fake: FakeActivities) => {
  const names = fake.requests.map((call) => call.name).filter((name) => name !== "openSandbox");
  return names.join(" ");
};

/** A model step that ends when the test lets it. */
function heldStep(answer: ModelStepFacts) {
  const [begun, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const step = async () => {
    begun.resolve();
    await released.promise;
    return answer;
  };
  return { step, begun: begun.promise, end: () => released.resolve() };
}

describe("the loop", () => {
  it("goes model step, tools, model step, and closes in order", async () => {
    const { fake, value } = await play({ steps: [answered([bashCall]), answered()] });
    expect(value?.status).toBe("completed");
    expect(sequence(fake)).toBe("openSession modelStep runTool modelStep closeSandbox closeSession");
  });

  it.each([
    ["completed without facts", async () => null as never],
    ["completed with something else", async () => ({ odd: true }) as never],
    [
      "failed without a type",
      async () => {
        throw ApplicationFailure.create({ message: "by hand", nonRetryable: true });
      },
    ],
  ])(
    "tells the model that a call's outcome is not known if its activity is %s, as by hand",
    async (_how, ended) => {
      const inputs: unknown[] = [];
      const { value, fake } = await play({
        steps: [answered([bashCall]), answered()],
        activities: {
          runTool: async (input) => {
            inputs.push(input);
            return input.isLost ? { outcome: "unknown", tokens: 1, ms: 0, hash: "lost" } : ended();
          },
        },
      });
      expect(value?.status).toBe("completed");
      expect(inputs).toMatchObject([
        { step: 1, index: 0 },
        { step: 1, index: 0, isLost: true },
      ]);
      expect(fake.steps()).toEqual([1, 2]);
    },
  );

  it("does not take a broken answer for the task's end: one more try, then a typed failure", async () => {
    const once = await play({ steps: [answered([], { finish: "error" }), answered()] });
    expect(once.value?.status).toBe("completed");
    expect(once.fake.steps()).toEqual([1, 2]);
    const twice = await play({ steps: [answered([], { finish: "other" })] });
    expect(twice.failure?.cause?.type).toBe("UnfinishedAnswer");
    expect(twice.fake.steps()).toEqual([1, 2]);
  });

  it("tells the model once that a call written as text is none, then ends with a typed failure", async () => {
    const wrote = answered([], { wroteCall: "bash" });
    const once = await play({ steps: [wrote, answered([bashCall]), answered()] });
    expect(once.value?.status).toBe("completed");
    const notes = once.fake.inputsOf("modelStep").map(({ note }) => note?.kind);
    expect(notes).toEqual([undefined, "notice", undefined]);
    const twice = await play({ steps: [wrote] });
    expect(twice.failure?.cause?.type).toBe("CallInText");
    expect(twice.fake.steps()).toEqual([1, 2]);
  });

  it("tries an empty answer once more, then ends with a typed failure", { tags: ["R37"] }, async () => {
    const { fake, failure } = await play({ steps: [empty] });
    expect(failure?.cause?.type).toBe("EmptyAnswer");
    expect(fake.steps()).toEqual([1, 1]);
  });

  it("ends with a typed failure at a content filter", { tags: ["R41"] }, async () => {
    const { failure } = await play({ steps: [answered([], { finish: "content-filter" })] });
    expect(failure?.cause?.type).toBe("ContentFilter");
  });

  it("takes one wrap-up step without tools at the limit", async () => {
    const { fake, value } = await play({ steps: [answered([bashCall])], maxSteps: 3 });
    expect(value?.status).toBe("max_steps");
    expect(fake.wrapUps()).toEqual([false, false, false, true]);
    expect(fake.inputsOf("runTool")).toHaveLength(3);
  });

  it(
    "warns once when the same call gives the same result four times, then stops",
    { tags: ["case-28"] },
    async () => {
      const { fake, failure } = await play({
        steps: [answered([bashCall])],
        hashes: Array.from({ length: 20 }, () => "same"),
      });
      expect(failure?.cause?.type).toBe("Stuck");
      const notes = fake.inputsOf("modelStep").filter((input) => input.note?.kind === "warning");
      expect(notes).toHaveLength(1);
      expect(fake.inputsOf("runTool").length).toBe(8);
    },
  );

  it("forgets the warning once the model has moved on", async () => {
    const work = Array.from({ length: 8 }, (_each, index) => `work${index}`);
    const polls = Array<string>(4).fill("poll");
    const hashes = [...polls, ...work, ...polls];
    const steps = [...hashes.map(() => answered([bashCall])), answered()];
    const { fake, value } = await play({ steps, hashes });
    expect(value?.status).toBe("completed");
    const warned = fake.inputsOf("modelStep").filter((input) => input.note?.kind === "warning");
    expect(warned).toHaveLength(2);
  });

  it("notices calls that go round in a circle, and lets a run wait that polls", async () => {
    const steps = [answered([bashCall])];
    const circle = { steps, hashes: Array.from({ length: 30 }, (_each, index) => `call${index % 3}`) };
    const { fake, failure } = await play(circle);
    expect(failure?.cause?.type).toBe("Stuck");
    expect(fake.inputsOf("runTool")).toHaveLength(24);
    const polls = { steps, hashes: Array<string>(30).fill("poll"), ms: 3_000, maxSteps: 20 };
    expect((await play(polls)).value?.status).toBe("max_steps");
  });
});

describe("compaction", () => {
  const full = 100_000;
  it("is due before the next step once the full request reaches the trigger, never twice", async () => {
    const { fake } = await play({
      steps: [answered([bashCall], { used: full }), answered()],
      rounds: [compactedTo(1, full)],
    });
    expect(sequence(fake)).toBe(
      "openSession modelStep runTool summarize modelStep closeSandbox closeSession",
    );
  });

  it("is made at the next boundary when a person asks for it, with the focus", async () => {
    const { step, begun, end } = heldStep(answered([bashCall]));
    const { fake } = await play({ steps: [step, answered()] }, async (handle) => {
      await begun;
      await handle.signal("compact", { focus: "the tests" });
      end();
    });
    expect(fake.inputsOf("summarize")).toEqual([
      expect.objectContaining({ trigger: "manual", focus: "the tests" }),
    ]);
  });

  it(
    "is undone at the next boundary when a person asks for it, and not repeated before a step",
    { tags: ["case-30"] },
    async () => {
      const { step, begun, end } = heldStep(answered([bashCall]));
      const { fake } = await play({ steps: [step, answered()] }, async (handle) => {
        await begun;
        await handle.signal("undoCompaction");
        end();
      });
      expect(sequence(fake)).toBe(
        "openSession modelStep runTool undoCompaction modelStep closeSandbox closeSession",
      );
    },
  );
});

describe("guidance", () => {
  it("is stored in small lists, in order, and nothing of a burst is lost", { tags: ["A7"] }, async () => {
    const count = 400;
    const { step, begun, end } = heldStep(answered());
    const { fake, value } = await play({ steps: [step, answered()] }, async (handle) => {
      await begun;
      for (let start = 0; start < count; start += 50) {
        await Promise.all(
          Array.from({ length: 50 }, (_value, index) =>
            handle.signal("guidance", { id: `g${start + index}`, text: "x".repeat(200) }),
          ),
        );
      }
      end();
    });
    expect(value?.status).toBe("completed");
    expect(fake.stored()).toHaveLength(count);
    expect(fake.heardIds()).toEqual(fake.stored());
    const largest = fake.inputsOf("storeGuidance").map((input) => JSON.stringify(input).length);
    expect(Math.max(...largest)).toBeLessThan(30_000);
  });

  it("that comes while the session is being closed starts it again, in a new run", async () => {
    let said = false;
    const { fake, value } = await play({
      steps: [answered()],
      whileClosing: async (handle) => {
        if (said) return;
        said = true;
        await handle.signal("guidance", { id: "late", text: "one more thing" });
      },
    });
    expect(value?.status).toBe("completed");
    expect(fake.inputsOf("openSession")).toHaveLength(2);
    expect(fake.heardIds()).toEqual(["late"]);
  });

  it("is carried over when the session continues as new", async () => {
    const { fake, value } = await play(
      {
        steps: [...Array.from({ length: 11 }, () => answered([bashCall])), answered()],
        maxHistoryEvents: 60,
      },
      async (handle) => {
        await handle.signal("guidance", { id: "a", text: "hello" });
      },
    );
    expect(value?.status).toBe("completed");
    expect(fake.inputsOf("openSession").length).toBeGreaterThanOrEqual(2);
    expect(fake.steps()).toEqual(Array.from({ length: 12 }, (_value, index) => index + 1));
    expect(fake.heardIds()).toEqual(["a"]);
  });
});
