/** Points in what a session promises: each kind of wait, a look at its work, and money that is set aside for a request. */
import { around, table, type CrashPoint } from "./point.ts";
import type { ScriptName } from "./scripts.ts";

const tags = ["A4"];
const event = (type: string, data?: object) =>
  table("events", data === undefined ? { type } : { type, data });
const atRest = (name: string, script: ScriptName): CrashPoint => ({
  name,
  script,
  hold: { at: "rest" },
  extraCalls: 0,
  tags,
});

/** One side of a write, where the other one only makes an attempt begin anew, as other points show. */
type Side = (...args: Parameters<typeof around>) => CrashPoint[];
const before: Side = (...args) => around(...args).slice(0, 1);
const after: Side = (...args) => around(...args).slice(1);

const WAITS: readonly CrashPoint[] = [
  ...after("a wait's beginning", "shortWait", table("waits", { kind: "time", how: null }), { tags }),
  atRest("in the middle of a timed wait", "timedWait"),
  ...after("the end of a timed wait", "shortWait", table("waits", { how: "time" }), { tags }),
  atRest("in the middle of a wait for a command", "processWait"),
  ...after("the end of an awaited command", "processWait", table("tool_calls", { background: "ended" }), {
    tags,
  }),
  ...around("the end of a wait for a command", "processWait", table("waits", { how: "process" }), { tags }),
  ...after("a command's end in the background", "background", table("tool_calls", { background: "ended" }), {
    tags,
  }),
  ...around("the telling of such an end", "background", table("tool_calls", { background: "told" }), {
    tags,
  }),
  ...after("a question", "question", table("questions", { status: "open" }), { tags }),
  ...after("a question's answer", "question", table("questions", { status: "answered" }), { tags }),
  ...before("the end of a wait for an answer", "laterQuestion", table("waits", { how: "answer" }), { tags }),
  atRest("in the middle of a wait for an answer", "laterQuestion"),
  ...around("a person's end of a wait", "woken", table("waits", { how: "woken" }), { tags }),
  ...before("the parking of a sandbox", "limit", event("sandbox:parked"), { tags }),
  atRest("in the middle of a model's limit, when the sandbox is parked", "limit"),
  atRest("while a question is open and the sandbox is stopped", "question"),
  ...around("the start of a stopped sandbox", "question", event("sandbox:adopted", { parked: true }), {
    tags,
  }),
];

const VERIFICATIONS: readonly CrashPoint[] = [
  ...before("the beginning of a command of verify", "verified", event("verify:started"), { tags }),
  atRest("in the middle of a command of verify", "verified"),
  ...around("what the commands of verify came to", "verified", table("verifications", { command: 1 }), {
    tags,
  }),
  ...around("what a failed look tells the agent", "mended", table("verifications", { round: 0 }), { tags }),
  ...after("what the look after that came to", "mended", table("verifications", { round: 1, command: 1 }), {
    tags,
  }),
  atRest("in the middle of a command of verify in a fresh sandbox", "fresh"),
  ...around("what a fresh sandbox's commands came to", "fresh", table("verifications", { command: 1 }), {
    tags,
  }),
  ...around(
    "the announcement of a verified delivery",
    "verified",
    table("publications", { status: "begun" }),
    {
      tags,
    },
  ),
];

const MONEY: readonly CrashPoint[] = [
  ...after("the setting aside of money", "budget", table("budget_reservations", {}), { tags }),
  atRest("while a person is asked about a budget", "allowed"),
  ...around("what a person allows beyond a budget", "allowed", table("budget_allowances", {}), { tags }),
  ...around("a bill under a budget", "budget", table("model_calls", { step: 2, status: "kept" }), {
    tags,
    lost: 1,
  }),
];

export const PROMISE_POINTS: readonly CrashPoint[] = [...WAITS, ...VERIFICATIONS, ...MONEY];
