import { describe, expect, it } from "vitest";
import { answerCostUsd } from "../../../activities/config/cost.ts";
import { ServedTier } from "../../../activities/model/served-tier.ts";

const served = (...events: readonly Record<string, unknown>[]) => {
  const tier = new ServedTier();
  const look = tier.around(undefined);
  for (const event of events) expect(look(event)).toBe(event);
  return tier.name;
};

describe("the service tier that answered", () => {
  it.each([
    [
      "Responses, where the last word counts",
      [
        { type: "response.created", response: { service_tier: "flex" } },
        { type: "response.output_text.delta", delta: "Hi" },
        { type: "response.completed", response: { service_tier: "default" } },
      ],
      "default",
    ],
    ["chat", [{ choices: [], service_tier: "priority" }], "priority"],
    ["messages", [{ type: "message_start", message: { usage: { service_tier: "standard" } } }], "standard"],
    ["a server that says nothing yet", [{ choices: [] }, { response: { service_tier: "auto" } }], undefined],
  ])("is read from %s", (_, events, name) => {
    expect(served(...events)).toBe(name);
  });

  it("decides the cost, rather than the requested one", () => {
    const price = { input: 2, cached: 2, output: 2, tiers: { flex: 0.5 } };
    const usage = { input: 1_000_000, output: 0, cached: 0, reasoning: 0 };
    const target = { price, tier: "flex" };
    expect(answerCostUsd(target, { usage })).toBe(1);
    expect(answerCostUsd(target, { usage, tier: "default" })).toBe(2);
    expect(answerCostUsd(target, { usage, tier: "default", costUsd: 0.3 })).toBe(0.3);
  });
});
