import { expect, it } from "vitest";
import { judgeRunc } from "../../../activities/sandbox/docker/known-escapes.ts";
import { networkFinding, runcFinding } from "../../../client/setup/sandbox-check.ts";

const OF_2024 = "CVE-2024-21626";
const OF_2025 = "CVE-2025-52881";

it.each<[version: string, packaged: string, open: readonly string[]]>([
  ["1.1.5", "v1.1.5-0-gf19387a6", [OF_2024, OF_2025]],
  // Debian's revision shows that it includes a fix.
  ["1.1.5+ds1", "1.1.5+ds1-1", [OF_2024, OF_2025]],
  ["1.1.5+ds1", "1.1.5+ds1-1+deb12u1", [OF_2025]],
  ["1.1.12", "", [OF_2025]],
  ["1.2.7", "", [OF_2025]],
  ["1.2.8", "", []],
  ["1.3.2", "", [OF_2025]],
  ["1.3.3-0ubuntu1~24.04.2", "", []],
  ["1.4.0-rc.2", "", [OF_2025]],
  ["1.4.0-rc.3", "", []],
  ["1.4.0", "", []],
  ["v2.0.0", "", []],
  ["unknown", "", [OF_2024, OF_2025]],
])("for runc %s (%s) it lists the open known escapes: %s", (version, packaged, open) => {
  const runc = judgeRunc(version, packaged);
  for (const name of [OF_2024, OF_2025]) expect(runc.open.includes(name), name).toBe(open.includes(name));
  const finding = runcFinding(runc);
  expect(finding.fix !== undefined).toBe(open.length > 0);
  expect(finding.warning === true).toBe(open.length > 0);
  expect(finding.found).toContain(version);
});

it("a runtime of an unknown version is not reported as all right", () => {
  expect(runcFinding(undefined)).toMatchObject({
    warning: true,
    found: expect.stringContaining("not checked"),
  });
});

it("reports what a sandbox can reach, and fails if tasks would be refused for it", () => {
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
