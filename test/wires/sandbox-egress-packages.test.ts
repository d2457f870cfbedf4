/** Package managers in a sandbox that reaches `group:packages` alone, if the group's registries answer. */
import { lookup } from "node:dns/promises";
import { readFileSync } from "node:fs";
import { afterAll, expect, test } from "vitest";
import { FULL_IMAGE } from "../../activities/config/sandbox-settings.ts";
import { expandDomains } from "../../activities/config/egress-domains.ts";
import { bash, createTestSandboxes } from "../support/test-sandboxes.ts";

const domains = expandDomains(["group:packages"]);
const found = await Promise.all(
  domains.map((name) => lookup(name, { all: true, family: 4 }).catch(() => [])),
);
/** A company's mirror may stand behind these names at a private address. */
const allow = [...new Set(found.flat().map(({ address }) => address))];
/** Of the machine, if its registries have certificates of its own. */
const bundle = process.env["NODE_EXTRA_CA_CERTS"] ?? process.env["SSL_CERT_FILE"];

const TRUST = ["NODE_EXTRA_CA_CERTS", "PIP_CERT", "CARGO_HTTP_CAINFO", "SSL_CERT_FILE"];
const OF_THE_FULL_IMAGE = [
  "cargo init -q --vcs none rust && cd rust && printf 'itoa = \"1\"\\n' >> Cargo.toml && cargo fetch -q",
  "mkdir go && cd go && go mod init example.test/a && go get rsc.io/quote@v1.5.2 && go mod download",
];

const sandboxes = createTestSandboxes({ name: `longhaul-egress-packages-${process.pid}`, hosts: [] });
afterAll(async () => {
  await sandboxes.dispose();
  await sandboxes.host.removeUnused();
});

test(
  "npm, pip, cargo and Go fetch through the list, and nothing of it is refused",
  { tags: ["E8"], timeout: 240_000 },
  async (context) => {
    const npm = domains[0] ?? "";
    if (!(await fetch(`https://${npm}/`).catch(() => undefined)))
      context.skip("no package registry answers here");
    // Cargo and Go are in the full image alone, which exists only if someone built it.
    const full = await sandboxes.docker
      .getImage(FULL_IMAGE)
      .inspect()
      .catch(() => undefined);
    const image = full === undefined ? {} : { image: FULL_IMAGE };
    const sandbox = await sandboxes.host.open(
      sandboxes.spec({ ...image, network: "listed", allow, memoryBytes: 768 * 2 ** 20, pids: 256 }),
    );
    await sandbox.egress?.allow(domains);
    if (bundle !== undefined) await sandbox.files.write("ca.pem", readFileSync(bundle));
    const trust =
      bundle === undefined ? "" : `export ${TRUST.map((name) => `${name}=/workspace/ca.pem`).join(" ")};`;
    for (const install of [
      "npm install --no-audit --no-fund is-number && node -p 'require(\"is-number\")(7)'",
      "python3 -m venv v && v/bin/pip -q install six && v/bin/python -c 'import six'",
      ...(full === undefined ? [] : OF_THE_FULL_IMAGE),
    ]) {
      const { state, err } = await bash(sandbox, `${trust} ${install}`, 90_000);
      expect(state, err).toMatchObject({ kind: "exited", exitCode: 0 });
    }
    expect(await sandbox.egress?.refused()).toEqual([]);
  },
);
