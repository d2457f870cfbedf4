import { describe, expect, it } from "vitest";
import { checkState, withRequired } from "../../../activities/forge/facts.ts";

describe("a check's state", () => {
  it.each([
    ["good", ["SUCCESS", "NEUTRAL", "SKIPPED", "success", "skipped", "warning"]],
    ["failed", ["FAILURE", "TIMED_OUT", "STARTUP_FAILURE", "ERROR", "failed", "error"]],
    ["stopped", ["CANCELLED", "canceled", "STALE"]],
    ["held", ["ACTION_REQUIRED", "manual"]],
    ["running", ["PENDING", "EXPECTED", "queued", "in_progress", "created", "", null, undefined, "new word"]],
  ] as const)("is %s for %j", (state, words) => {
    for (const word of words) expect(checkState(word)).toBe(state);
  });
});

describe("what a branch requires", () => {
  const check = (name: string) => ({ name, state: "good", url: undefined, job: undefined }) as const;

  it("is marked, and named if it has not reported", () => {
    expect(withRequired([check("unit"), check("lint")], ["unit", "e2e"])).toMatchObject([
      { name: "unit", state: "good", isRequired: true },
      { name: "lint", state: "good", isRequired: false },
      { name: "e2e", state: "missing", isRequired: true },
    ]);
  });

  it("is not known where the forge does not say", () => {
    expect(withRequired([check("unit")], undefined)).toMatchObject([{ isRequired: undefined }]);
  });

  it("may have patterns, in which nothing but the star is special", () => {
    const names = ["ci / test (push)", "ci / test [push]", "a.b", "aXb", "ci"];
    const required = withRequired(names.map(check), ["ci / * (push)", "a.b", "[x]"]);
    expect(required.filter(({ isRequired }) => isRequired).map(({ name }) => name)).toEqual([
      "ci / test (push)",
      "a.b",
      "[x]",
    ]);
  });
});
