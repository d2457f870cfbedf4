/** All points at which a worker is killed. */
import { around, table, type CrashPoint, type Hold } from "./point.ts";
import { PROMISE_POINTS } from "./promise-points.ts";

const modelHold = (step: number, half = false): Hold => ({ at: "model", purpose: "step", step, half });

/** The next step is requested in parallel with a save, so its request may be under way. */
const BESIDE = { lost: 1, kept: 1 } as const;
const IF_LOST = { lost: 1, kept: 0 } as const;

export const CRASH_POINTS: readonly CrashPoint[] = [
  ...around("the run's taking over", "plain", table("runs", {}), { tags: ["A4"] }),
  ...around("the sandbox's entry", "plain", table("events", { type: "sandbox:created" }), { tags: ["A4"] }),
  ...around("a person's message", "plain", table("stored_messages", { kind: "guidance" }), { tags: ["A4"] }),
  {
    name: "when the model has a request and says nothing yet",
    script: "plain",
    hold: modelHold(2),
    extraCalls: 1,
    tags: ["A4"],
  },
  {
    name: "in the middle of an answer",
    script: "plain",
    hold: modelHold(2, true),
    extraCalls: 1,
    tags: ["A4", "R2"],
  },
  ...around("an answer", "plain", table("stored_messages", { slot: "assistant", step: 2 }), {
    tags: ["A3", "A4", "R3"],
    ...IF_LOST,
  }),
  ...around("a command's claim", "plain", table("tool_calls", { status: "running", step: 5 }), {
    tags: ["A4"],
  }),
  ...around("an edit's claim", "plain", table("tool_calls", { status: "running", step: 3 }), {
    tags: ["A4"],
  }),
  {
    name: "in the middle of a command",
    script: "waiting",
    hold: { at: "rest" },
    extraCalls: 0,
    tags: ["A1", "A4"],
  },
  ...around("one of three results", "plain", table("stored_messages", { slot: "tool:0", step: 2 }), {
    tags: ["A4", "A24"],
  }),
  ...around("a written file's result", "plain", table("stored_messages", { slot: "tool:1", step: 2 }), {
    tags: ["A4"],
  }),
  ...around("an edit's result", "plain", table("stored_messages", { slot: "tool:0", step: 3 }), {
    tags: ["A4"],
  }),
  ...around("what a file says", "plain", table("stored_messages", { slot: "tool:0", step: 4 }), {
    tags: ["A4"],
  }),
  ...around("a save of the workspace", "plain", table("checkpoints", { step: 2 }), {
    tags: ["A4"],
    ...BESIDE,
  }),
  {
    name: "when the model is asked for a summary",
    script: "compacting",
    hold: { at: "model", purpose: "summary" },
    extraCalls: 1,
    tags: ["A4", "R6"],
  },
  ...around("a round of compaction", "compacting", table("compaction_events", {}), {
    tags: ["A4", "R6"],
    ...IF_LOST,
  }),
  ...around("a prune", "pruning", table("events", { type: "context:pruned" }), { tags: ["A4"] }),
  ...around("the last save", "plain", table("checkpoints", { step: 5 }), { tags: ["R7"], ...BESIDE }),
  ...around("the sandbox's removal", "plain", table("events", { type: "sandbox:removed" }), { tags: ["R7"] }),
  ...around("the outcome", "plain", table("events", { type: "session:ended" }), { tags: ["R7"] }),
  ...PROMISE_POINTS,
];
