/** Package managers in a sandbox that reaches `group:packages` alone, where the group's registries answer. */
import { lookup } from "node:dns/promises";
import { readFileSync } from "node:fs";
import { afterAll, expect, test } from "vitest";
import { expandDomains } from "../../activities/config/egress-domains.ts";
import { bash, createTestSandboxes } from "../support/test-boxes.ts";

const domains = expandDomains(["group:packages"]);
const found = await Promise.all(
  domains.map((name) => lookup(name, { all: true, family: 4 }).catch(() => [])),
);
/** A company's mirror may stand behind these names at a private address. */
const allow = [...new Set(found.flat().map(({ address }) => address))];
/** Of the machine, where its registries have certificates of its own. */
const bundle = process.env["NODE_EXTRA_CA_CERTS"] ?? process.env["SSL_CERT_FILE"];

const sandboxes = createTestSandboxes({ name: `longhaul-egress-packages-${process.pid}`, hosts: [] });
afterAll(async () => {
  await sandboxes.dispose();
  await sandboxes.host.removeUnused();
});

test("npm and pip install through the list, and nothing of it is refused [E8]", async (context) => {
  const npm = domains[0] ?? "";
  if (!(await fetch(`https://${npm}/`).catch(() => undefined)))
    context.skip("no package registry answers here");
  const sandbox = await sandboxes.host.open(
    sandboxes.spec({ network: "listed", allow, memoryBytes: 768 * 2 ** 20, pids: 256 }),
  );
  await sandbox.egress?.allow(domains);
  if (bundle !== undefined) await sandbox.files.write("ca.pem", readFileSync(bundle));
  const trust = bundle === undefined ? "" : "export NODE_EXTRA_CA_CERTS=$PWD/ca.pem PIP_CERT=$PWD/ca.pem;";
  for (const install of [
    "npm install --no-audit --no-fund is-number && node -p 'require(\"is-number\")(7)'",
    "python3 -m venv v && v/bin/pip -q install six && v/bin/python -c 'import six'",
  ]) {
    const { state, err } = await bash(sandbox, `${trust} ${install}`, 90_000);
    expect(state, err).toMatchObject({ kind: "exited", exitCode: 0 });
  }
  expect(await sandbox.egress?.refused()).toEqual([]);
}, 240_000);
