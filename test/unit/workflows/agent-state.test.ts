import { expect, it } from "vitest";
import { carry, createState, type AgentState } from "../../../workflows/agent-state.ts";
import { createInbox } from "../../../workflows/inbox.ts";

/** A run's state, each field unlike its initial value. */
const STATE: AgentState = {
  phase: "thinking",
  inbox: createInbox([], ["a"]),
  step: 7,
  results: 2,
  steps: 5,
  moreSteps: 3,
  endsAtLimit: true,
  epoch: 3,
  context: { used: 5_000, estimated: true, prunable: 100 },
  occasion: "return",
  compaction: {
    round: 2,
    breaker: 1,
    futile: 1,
    lastStep: 4,
    isFresh: true,
    request: { focus: "the port" },
    undoRequests: ["u"],
  },
  answers: { overflows: 1, empty: 1, unfinished: 1, mismatches: 1, writtenCalls: 1, cuts: 2 },
  note: { kind: "notice", text: "Say it in a call." },
  repetition: { calls: ["x"], isWarned: true },
  interrupting: true,
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
  delivery: { pushedAtMs: 5_000, last: "pushed" },
  verify: { round: 1, last: { outcome: "failed", tree: "t1", signature: "s1", reason: "npm test" } },
  waits: 3,
  later: [
    { id: "s2c0", kind: "ask", text: "Which?", step: 2, index: 0, askedAtMs: 1, settlement: undefined },
  ],
  commands: { started: 2, isTold: true },
  remark: "a remark",
};

/** Fields that opening the session sets again, that belong to a step in flight, and that are for people alone. */
const NOT_CARRIED = [
  "phase",
  "epoch",
  "occasion",
  // Of calls that are left for it alone: see carryWaiting.
  "interrupting",
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
