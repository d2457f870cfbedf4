/** Which model makes a step if others may step in, and the limit of what a session may cost. */
import { describe, expect, it } from "vitest";
import { answered, bashCall, empty, unavailable } from "../support/fake-activities.ts";
import { play } from "../support/play-loop.ts";

describe("a model whose provider fails", () => {
  const policy = { fallbacks: { count: 2, returnAfterMs: 3_600_000 } };

  it("is followed by the next of the list at the same step, which then stays", async () => {
    const steps = [unavailable, answered([bashCall]), answered()];
    const { fake, value } = await play({ steps, policy });
    expect(value?.status).toBe("completed");
    expect(fake.inputsOf("modelStep")).toMatchObject([
      { step: 1, hasFallback: true },
      { step: 1, fallback: 1, hasFallback: true, switched: "fallback" },
      { step: 2, fallback: 1 },
    ]);
    expect(fake.inputsOf("modelStep")[0]).not.toHaveProperty("fallback");
    expect(fake.inputsOf("modelStep")[2]).not.toHaveProperty("switched");
  });

  it("is followed by the last of the list, which has no other behind it", async () => {
    const { fake } = await play({ steps: [unavailable, unavailable, answered()], policy });
    const last = fake.inputsOf("modelStep").at(-1);
    expect(last).toMatchObject({ step: 1, fallback: 2, switched: "fallback" });
    expect(last).not.toHaveProperty("hasFallback");
  });

  it("is asked again after a while, and the view is compacted for the model that is asked", async () => {
    const steps = [unavailable, answered([bashCall], { used: 120_000 }), answered([bashCall]), answered()];
    const { fake } = await play({ steps, policy: { fallbacks: { count: 2, returnAfterMs: 1 } } });
    const asked = fake.inputsOf("modelStep");
    // An empty millisecond may pass between two steps of a test: it returns at the next step at the latest.
    expect(asked[1]).toMatchObject({ fallback: 1, switched: "fallback" });
    expect(asked.slice(2).some((input) => input.switched === "return" && input.fallback === undefined)).toBe(
      true,
    );
    const stays = await play({ steps, policy });
    expect(stays.fake.inputsOf("summarize")).toMatchObject([{ fallback: 1 }]);
  });

  it("is named alone if there is no other behind it", async () => {
    const { fake } = await play({ steps: [answered()] });
    expect(Object.keys(fake.inputsOf("modelStep")[0] ?? {})).toEqual(["step", "round", "model"]);
  });
});

describe("a session that may cost so much", () => {
  it("ends after a last answer without calls, with what limited it", async () => {
    const steps = [
      answered([bashCall], { costUsd: 0.9 }),
      answered([bashCall], { costUsd: 1.2 }),
      answered(),
    ];
    const { fake, value } = await play({ steps, policy: { maxCostUsd: 1 } });
    expect(value?.status).toBe("max_steps");
    expect(fake.inputsOf("closeSession")).toMatchObject([{ status: "max_steps", limit: "cost" }]);
    expect(fake.wrapUps()).toEqual([false, false, true]);
    expect(fake.inputsOf("modelStep")[2]?.note?.text).toMatch(/may cost is reached/);
  });

  it("tries its last answer again if it was empty", async () => {
    const steps = [answered([bashCall], { costUsd: 2 }), empty, answered()];
    const { fake, value } = await play({ steps, policy: { maxCostUsd: 1 } });
    expect(value?.status).toBe("max_steps");
    expect(fake.wrapUps()).toEqual([false, true, true]);
  });
});
