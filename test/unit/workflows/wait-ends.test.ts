import { expect, it } from "vitest";
import { earlyEnd } from "../../../workflows/asking.ts";

it.each([
  [["m1", "answer-s1c0"], { process: true, woken: true }, "message"],
  [["answer-s1c0", "answer-s1c1"], { process: true, woken: true }, "answer"],
  [[], { process: true, woken: true }, "process"],
  [[], { woken: true }, "woken"],
  [[], {}, undefined],
] as const)("with %j waiting and %j, a wait ends by one reason: %s", (queued, ends, how) => {
  expect(earlyEnd(queued, { ends })).toBe(how);
});
