/** Repetition, circles and waiting, by what the workflow knows of calls. */
import { hasMovedOn, repeatable, stuckVerdict } from "../../../workflows/stuck.ts";
import type { ToolFacts } from "../../../activities/contract/calls.ts";
import fc from "fast-check";
import { describe, expect, it } from "vitest";

const facts = (hash: string, more: Partial<ToolFacts> = {}): ToolFacts => ({
  outcome: "completed",
  tokens: 10,
  ms: 40,
  hash,
  ...more,
});
const call = (hash: string, more: Partial<ToolFacts> = {}, name = "bash") =>
  repeatable({ name }, facts(hash, more));
const times = (count: number, ...calls: readonly string[]) =>
  Array.from({ length: count }, () => calls).flat();

const look = call("look");
const slow = call("slow", { ms: 3_020 });
const live = call("live", { isLive: true }, "bash_output");
const badEdit = call("edit", { outcome: "error" }, "edit_file");

describe("stuckVerdict", () => {
  it.each([
    ["the same call with the same result four times", ["a", "a", "a", "a"], "warn"],
    ["the same after other work", ["x", "y", "a", "a", "a", "a"], "warn"],
    ["two that take turns", ["a", "b", "a", "b"], "warn"],
    ["three times only", ["a", "a", "a"], undefined],
    ["changing results", ["a1", "a2", "a3", "a4", "a5"], undefined],
    ["different files", ["a", "b", "c", "d"], undefined],
    ["a break in between", ["a", "a", "b", "a", "a"], undefined],
    ["a poll that sleeps first", times(7, slow), undefined],
    ["the output of a running command", times(50, live), undefined],
    ["sleep, then a look that shows the same", times(20, slow, look), undefined],
    ["sleep, then two looks", times(20, slow, look, "state"), undefined],
    ["sleep, then looks at three things", times(20, slow, look, "state", "log"), undefined],
    ["a running command's output, and the log it writes", times(20, live, "log"), undefined],
    ["read, an edit that fails, a test that fails", times(4, "read", badEdit, "test"), "warn"],
    ["the same with a slow test", times(4, "read", badEdit, slow), "warn"],
    ["an edit that fails, and a slow test", times(2, badEdit, slow), "warn"],
    ["four calls round and round", times(3, "a", "b", "c", "d"), "warn"],
    ["three calls in changing order", "abcbacabccba".split(""), "warn"],
    ["five files read three times", times(3, "a", "b", "c", "d", "e"), undefined],
  ])("judges %s", { tags: ["case-28"] }, (_what, calls, verdict) => {
    expect(stuckVerdict(calls, false)).toBe(verdict);
  });

  it("stops if the warning did not help", { tags: ["case-28"] }, () => {
    expect(stuckVerdict(["a", "a", "a", "a"], true)).toBe("stop");
  });

  it("notices every circle of up to four kinds of quick calls within twelve, however it begins", () => {
    const circle = fc.uniqueArray(fc.stringMatching(/^[0-9a-f]{8}$/), {
      minLength: 1,
      maxLength: 4,
    });
    const before = fc.array(fc.stringMatching(/^[0-9a-f]{8}$/), { maxLength: 8 });
    fc.assert(
      fc.property(circle, before, (calls, work) => {
        expect(stuckVerdict([...work, ...times(12, ...calls).slice(0, 12)], false)).toBe("warn");
      }),
    );
  });

  it("takes no wait for a circle, whatever is looked at between the waits", () => {
    const looks = fc.array(fc.stringMatching(/^[0-9a-f]{8}$/), { maxLength: 3 });
    fc.assert(
      fc.property(looks, fc.constantFrom(slow, live), fc.nat({ max: 60 }), (calls, wait, count) => {
        expect(stuckVerdict(times(20, wait, ...calls).slice(0, count), true)).toBeUndefined();
      }),
    );
  });
});

it("tells work from a few calls that take turns", () => {
  expect(hasMovedOn(["a", "b", "c", "d", "e"])).toBe(true);
  expect(hasMovedOn(times(10, "a", "b", slow, look))).toBe(false);
});
