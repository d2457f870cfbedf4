import { expect, it } from "vitest";
import { networkFinding, runcFinding } from "../../../client/setup/sandbox-check.ts";

it.each([
  ["1.1.5+ds1-1+deb12u1", true],
  ["1.2.7", true],
  ["1.2.8", false],
  ["1.3.2", true],
  ["1.3.3", false],
  ["1.4.0", false],
  ["v2.0.0", false],
])("of runc %s it says whether known ways out of a sandbox are open: %s", (version, open) => {
  const finding = runcFinding(version);
  expect(finding.fix !== undefined).toBe(open);
  expect(finding.warning === true).toBe(open);
  expect(finding.found).toContain(version);
});

it("a runtime whose version is not known is not reported as all right", () => {
  expect(runcFinding(undefined)).toMatchObject({
    warning: true,
    found: expect.stringContaining("not judged"),
  });
});

it("says what a sandbox can reach, and fails where tasks would be refused for it", () => {
  const shut = networkFinding({ reach: "internet", tried: 40 }, "required");
  expect(shut).toEqual({ ok: true, found: expect.stringContaining("40 addresses tried") });
  const open = { reach: "everything", why: "no rights" } as const;
  expect(networkFinding(open, "required")).toMatchObject({
    ok: false,
    found: expect.stringContaining("no rights"),
    fix: expect.stringContaining("sandbox.guard: best-effort"),
  });
  expect(networkFinding(open, "best-effort")).toMatchObject({ ok: true, warning: true });
  expect(networkFinding({ reach: "allowed", reachable: ["10.0.0.1"] }, "required").found).toContain(
    "10.0.0.1",
  );
});
