import { describe, expect, it } from "vitest";
import { trajectoryDocument } from "../../../client/sessions/transcript.ts";
import { sessionRow, wholeSession } from "../../support/stored-whole.ts";

const document = trajectoryDocument(sessionRow, wholeSession, "1.2.3");

describe("a session as a public trajectory", { tags: ["U18"] }, () => {
  it("numbers its steps from 1 without gaps, and omits abandoned lines", () => {
    expect(document.steps.map((step) => step.step_id)).toEqual([1, 2, 3, 4]);
    expect(document.steps.map((step) => step.source)).toEqual(["user", "agent", "system", "agent"]);
    expect(JSON.stringify(document)).not.toContain("abandoned");
  });

  it("gives the agent's fields to the agent's steps only", () => {
    for (const step of document.steps.filter(({ source }) => source !== "agent")) {
      for (const field of ["reasoning_content", "tool_calls", "observation", "metrics"])
        expect(step).not.toHaveProperty(field);
    }
  });

  it("pairs results with the calls of the same step, and keeps arguments that were not an object", () => {
    const [, step] = document.steps;
    expect(step?.tool_calls?.map((call) => call.tool_call_id)).toEqual(["c1", "c2"]);
    expect(step?.tool_calls?.[1]?.arguments).toEqual({ input: "not json" });
    expect(step?.observation?.results.map((result) => result.source_call_id)).toEqual(["c1"]);
    expect(step?.reasoning_content).toBe("Look first.");
  });

  it("bills each step with its own call, and the whole with all of them", () => {
    expect(document.steps[1]?.metrics).toEqual({
      prompt_tokens: 1_000,
      completion_tokens: 50,
      cached_tokens: 400,
      cost_usd: (600 * 2 + 400 + 50 * 10) / 1_000_000,
    });
    expect(document.steps[3]?.metrics?.["prompt_tokens"]).toBe(1_000);
    expect(document.final_metrics).toMatchObject({ total_prompt_tokens: 3_000, total_steps: 4 });
  });

  it("names files instead of carrying them", () => {
    expect(document.steps[0]?.message).toBe("Fix <b>it</b>\n[a.png (image/png)]");
  });
});
