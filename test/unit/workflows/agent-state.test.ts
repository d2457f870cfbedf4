import { expect, it } from "vitest";
import { carry, createState, type AgentState } from "../../../workflows/agent-state.ts";
import { createInbox } from "../../../workflows/inbox.ts";

/** A run's state, each field unlike its initial value. */
const STATE: AgentState = {
  phase: "thinking",
  inbox: createInbox(
    [{ id: "a", parts: [{ type: "text", text: "hello" }], queuedAt: "2026-11-22T10:00:00Z" }],
    2,
    ["a"],
  ),
  step: 7,
  results: 2,
  steps: 5,
  moreSteps: 3,
  endsAtLimit: true,
  epoch: 3,
  context: { used: 5_000, estimated: true, prunable: 100 },
  round: 2,
  occasion: "return",
  breaker: 1,
  futile: 1,
  roundStep: 4,
  compacted: true,
  compactRequest: { focus: "the port" },
  undoRequests: ["u"],
  interrupting: true,
  beginsInterruptible: true,
  recentCalls: ["x"],
  loopWarned: true,
  loopWarningDue: true,
  overflows: 1,
  emptyAnswers: 1,
  unfinished: 1,
  mismatches: 1,
  mismatch: "it is not JSON",
  notice: "Say it in a call.",
  writtenCalls: 1,
  cuts: 2,
  usage: { input: 9, output: 8, cached: 7, reasoning: 6, calls: 5 },
  costUsd: 1.5,
  deadlineAtMs: 7_000,
  deadline: "near",
  fallback: { index: 1, sinceMs: 5_000 },
  limits: { sinceMs: 5_000, count: 1, untilMs: 6_000 },
  switched: "fallback",
  lastCalls: [{ step: 7, call: { name: "bash", about: "ls" }, facts: undefined }],
  sandbox: { container: "c", taskQueue: undefined },
  waitingCalls: [],
  leftVersion: "fleet:v1",
  pushedAtMs: 5_000,
  delivered: "pushed",
  remark: "a remark",
};

/** Fields that opening the session sets again, that belong to a step in flight, and that are for people alone. */
const NOT_CARRIED = [
  "phase",
  "epoch",
  "occasion",
  // Of calls that are left for it alone: see carryWaiting.
  "interrupting",
  "beginsInterruptible",
  "deadline",
  "lastCalls",
  "sandbox",
  "remark",
] as const;

it("the loop's state survives continue-as-new, including the loop warning", () => {
  const next = createState({ carried: carry(STATE) });
  const fresh = createState({});
  const expected = { ...STATE, ...Object.fromEntries(NOT_CARRIED.map((name) => [name, fresh[name]])) };
  expect(next).toEqual(expected);
  for (const name of NOT_CARRIED) expect(fresh[name], name).not.toEqual(STATE[name]);
});

it("an older version's state is understood", () => {
  const { nudge, compacted, overflows, emptyAnswers, unfinished, ...older } = carry(STATE);
  expect([nudge, compacted, overflows, emptyAnswers, unfinished]).toEqual([true, true, 1, 1, 1]);
  expect(createState({ carried: older })).toMatchObject({
    loopWarningDue: false,
    compacted: false,
    overflows: 0,
    emptyAnswers: 0,
    unfinished: 0,
  });
});
