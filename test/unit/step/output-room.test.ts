/** The token limit of an answer, and the next one after thinking used it up. */
import { describe, expect, it } from "vitest";
import { budgetFor } from "../../../activities/config/budget.ts";
import { afterUsedUp, answerRoom } from "../../../activities/step/failed-request.ts";

const budget = budgetFor(32_000, { triggerRatio: 0.8 });
const limits = { maxOutput: 2_000, moreOutput: 8_000 };

describe("an answer whose limit thinking used up", { tags: ["S13"] }, () => {
  it.each([
    ["is asked again with the model's own limit", limits, 5_000, false, "again"],
    ["ends if that was not enough either", limits, 5_000, true, "end"],
    ["ends if the model is not known to write more", { maxOutput: 2_000 }, 5_000, false, "end"],
    ["has the conversation compacted if that leaves no room", { maxOutput: 8_000 }, 27_000, false, "compact"],
  ] as const)("%s", (_, given, used, isMore, next) => {
    expect(afterUsedUp(answerRoom(given, budget, used, isMore), given, budget, used)).toBe(next);
  });

  it("never gets more than the window has left", () => {
    expect(answerRoom({ maxOutput: 2_000, moreOutput: 30_000 }, budget, 20_000, true).tokens).toBe(11_000);
  });
});
