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

it("names what sandbox.allow opens, and not the addresses that were tried", () => {
  const allow = ["10.20.0.0/16", "192.168.1.5"];
  for (const network of [
    { reach: "allowed", reachable: ["10.20.0.1"], tried: 40 },
    { reach: "internet" },
  ] as const)
    expect(networkFinding(network, { guard: "required", allow }).found).toContain(
      "bridge: the internet, and by sandbox.allow 10.20.0.0/16, 192.168.1.5; nothing else of the host",
    );
});

it("reports what a sandbox can reach, and fails if tasks would be refused for it", () => {
  const required = { guard: "required", allow: [] } as const;
  const shut = networkFinding({ reach: "internet", tried: 40 }, required);
  expect(shut).toEqual({
    ok: true,
    found: "bridge: the internet; not the host, its networks or metadata services (40 addresses tried)",
  });
  const open = { reach: "everything", why: "no rights" } as const;
  expect(networkFinding(open, required)).toMatchObject({
    ok: false,
    found: expect.stringContaining("no rights"),
    fix: expect.stringContaining("sandbox.guard: best-effort"),
  });
  expect(networkFinding(open, { ...required, guard: "best-effort" })).toMatchObject({
    ok: true,
    warning: true,
  });
  expect(networkFinding({ reach: "listed", tried: 40 }, required)).toMatchObject({
    ok: true,
    found: expect.stringMatching(/^listed: only the allowed names; not the host/),
  });
});
