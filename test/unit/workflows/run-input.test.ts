import { expect, it } from "vitest";
import { carry, createState } from "../../../workflows/agent-state.ts";
import { startRefusal } from "../../../workflows/run-input.ts";

const item = { id: "a", parts: [{ type: "text", text: "x" }], queuedAt: "2026-11-21T12:00:00.000Z" };
const outcome = { status: "completed" };
const order = { push: true, pr: "none" };
const json = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

it("takes what clients send and runs carry over", () => {
  const state = createState({ guidance: [item as never] });
  for (const input of [
    undefined,
    {},
    { task: "x" },
    { schedule: "nightly" },
    { guidance: [item], unknown: 1 },
    { deliver: { order, outcome: { ...outcome, error: { type: "Stuck", message: "…" } } } },
    { carried: json({ ...carry(state), context: { used: Infinity, estimated: true } }) },
    { carried: { waitingCalls: [{ call: { name: "bash" }, index: 0, asked: {} }], interrupting: false } },
  ])
    expect(startRefusal(input)).toBeUndefined();
});

it.each([
  ["guidance", { guidance: [{ ...item, parts: [...item.parts, null] }] }],
  ["guidance", { guidance: [{ ...item, queuedAt: "soon" }] }],
  ["blank", { task: "" }],
  ["blank", { task: " \n\t\u00a0" }],
  ["schedule", { schedule: 7 }],
  ["deliver", { deliver: 1 }],
  ["deliver", { deliver: { order, outcome: { status: "odd" } } }],
  ["deliver", { deliver: { outcome } }],
  ["inbox", { carried: { inbox: { seen: [null] } } }],
  ["inbox", { carried: { inbox: { seen: 7 } } }],
  ["waitingCalls", { carried: { waitingCalls: [null] } }],
  ["repetition", { carried: { repetition: { calls: 7 } } }],
  ["deadlineAtMs", { carried: { deadlineAtMs: 1e300 } }],
  ["usage", { carried: { usage: { input: "x" } } }],
])("names what is wrong: %s", (name, input) => {
  expect(startRefusal(input)).toContain(name);
});
