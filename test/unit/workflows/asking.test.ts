import { expect, it } from "vitest";
import {
  carryWaiting,
  createAsking,
  mayMove,
  type OpenQuestion,
  type WaitingCall,
} from "../../../workflows/asking.ts";

const question = (kind: OpenQuestion["kind"], settlement?: OpenQuestion["settlement"]): OpenQuestion => ({
  id: `s1${kind}`,
  kind,
  text: "?",
  askedAtMs: 0,
  settlement,
});
const asking = (...open: OpenQuestion[]) => ({ ...createAsking(), open });

it("a waiting run carries a call's questions to another version of the workers", () => {
  expect(mayMove(asking(question("ask"), question("approval"), question("plan"), question("egress")))).toBe(
    true,
  );
});

it.each(["mcp", "budget"] as const)(
  "a question of kind %s is answered on the version that asked it",
  (kind) => {
    expect(mayMove(asking(question("ask"), question(kind)))).toBe(false);
    expect(mayMove(asking(question(kind, { how: "withdrawn", why: "said" })))).toBe(true);
  },
);

it("a run carries the calls that it leaves, their answers, and whether they were interrupted", () => {
  const call = { name: "ask_user", about: "Which?", by: "person" } as const;
  const settlement = { how: "answered", text: "This." } as const;
  const calls: WaitingCall[] = [
    { call, index: 0 },
    { call, index: 2 },
    { call, index: 3, about: "egress" },
  ];
  const open = asking({ ...question("ask"), index: 0 }, { ...question("egress", settlement), index: 3 });
  const waitingCalls = [
    { call, index: 0, asked: {} },
    { call, index: 2 },
    { call, index: 3, about: "egress", asked: { settlement } },
  ];
  expect(carryWaiting(open, calls, true)).toEqual({ waitingCalls, interrupting: true });
  expect(carryWaiting(open, calls, false)).toEqual({ waitingCalls, interrupting: false });
  expect(carryWaiting(open, [], true)).toEqual({});
});
