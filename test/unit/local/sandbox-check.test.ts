import { expect, it } from "vitest";
import { networkFinding, runcFinding } from "../../../worker/local/sandbox-check.ts";

it.each([
  ["1.1.5+ds1-1+deb12u1", true],
  ["1.2.7", true],
  ["1.2.8", false],
  ["1.3.2", true],
  ["1.3.3", false],
  ["1.4.0", false],
  ["v2.0.0", false],
])("of runc %s it says whether known ways out of a box are open: %s", (version, open) => {
  expect(runcFinding(version).mend !== undefined).toBe(open);
  expect(runcFinding(version).found).toContain(version);
});

it("says what a box can reach, and what to do where that is too much", () => {
  expect(networkFinding({ reach: "internet" })).toEqual({
    ok: true,
    found: expect.stringContaining("not the host"),
  });
  expect(networkFinding({ reach: "everything", why: "no rights" })).toMatchObject({
    found: expect.stringContaining("no rights"),
    mend: expect.stringContaining("network: none"),
  });
  expect(runcFinding(undefined).mend).toBeUndefined();
});
