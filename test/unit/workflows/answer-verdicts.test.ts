import { expect, it } from "vitest";
import type { ModelStepFacts } from "../../../activities/contract/activities.ts";
import type { RunPolicy } from "../../../activities/contract/run-policy.ts";
import { applyStep, createState } from "../../../workflows/agent-state.ts";
import { afterStep, applyMove } from "../../../workflows/loop-policy.ts";
import { answered, bashCall } from "../../support/fake-activities.ts";

const policy = {} as RunPolicy;
const answer = (finish: string): ModelStepFacts => answered([], { finish });

it("a call written as text is asked for again with a note that names it, then the run fails", () => {
  const state = createState({});
  const wrote = answered([], { wroteCall: "bash" });
  const first = afterStep(state, wrote, policy);
  expect(first).toEqual({ kind: "corrected", note: expect.stringContaining("a call of bash") });
  applyMove(state, wrote, first);
  expect(state.note?.text).toContain("Nothing was run");
  const second = afterStep(state, wrote, policy);
  expect(second).toMatchObject({ kind: "failed", type: "CallInText" });
  expect(second).toMatchObject({ message: expect.stringMatching(/chat template.*callsInText: true/) });
  applyMove(state, answered([bashCall]), { kind: "run tools", calls: [bashCall] });
  expect(afterStep(state, wrote, policy).kind).toBe("corrected");
});

it("an empty answer is asked for again with the provider's reason, which the failure names", () => {
  const state = createState({});
  const facts = {
    kind: "empty",
    usage: { input: 1, output: 1, cached: 0, reasoning: 0 },
    reason: "MALFORMED: print(",
    epoch: 1,
  } as const;
  applyStep(state, facts);
  expect(afterStep(state, facts, policy)).toEqual({
    kind: "corrected",
    note: expect.stringContaining("MALFORMED: print("),
  });
  applyStep(state, facts);
  expect(afterStep(state, facts, policy)).toMatchObject({
    type: "EmptyAnswer",
    message: expect.stringContaining("MALFORMED: print("),
  });
});

it("a cut answer is continued; the fourth in a row gets a note, the eighth ends the run", () => {
  const state = createState({});
  const moves = Array.from({ length: 8 }, () => {
    const next = afterStep(state, answer("length"), policy);
    applyMove(state, answer("length"), next);
    return next.kind;
  });
  const again = ["again", "again", "again"];
  expect(moves).toEqual([...again, "corrected", ...again, "failed"]);
});
