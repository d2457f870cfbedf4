/** What `doctor` says of keys: real hosts over TLS, which accept, refuse, or are not there. */
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:https";
import { join } from "node:path";
import { expect, it } from "vitest";
import { agentConfigSchema } from "../../../activities/config/agent-config.ts";
import { keyChecks } from "../../../client/setup/key-check.ts";
import { noCertificates } from "../../support/certificates.ts";
import { emptyFolder } from "../../support/empty-folder.ts";
import { listen } from "../../support/listen.ts";
import { issueCertificate } from "../../support/private-authority.ts";

const VALUE = "s3cr3t-0123456789";

it.skipIf(noCertificates() !== undefined)(
  "each key's host is asked once, and the finding has no value",
  async () => {
    const { authority, key, certificate } = issueCertificate();
    const asked: string[] = [];
    const server = createServer(
      { key: readFileSync(key), cert: readFileSync(certificate) },
      ({ method, url, headers }, response) => {
        asked.push(`${method} ${url}`);
        const isRight = headers.authorization === `Bearer ${VALUE}`;
        const status = url === "/gone/" ? 404 : 200;
        response.writeHead(isRight ? status : 401).end();
      },
    );
    const port = await listen(server);
    const folder = emptyFolder();
    const host = `localhost:${port}`;
    const recipe = (path: string) => `{registry: npm, host: "${host}", path: ${path}}`;
    writeFileSync(
      join(folder, "named.yaml"),
      `keys:\n  good: ${recipe("/npm")}\n  bad: ${recipe("/npm")}\n  odd: ${recipe("/gone")}\n  unset: ${recipe("/npm")}\n  away: {registry: npm, host: "localhost:1"}\n  api: {host: "${host}", header: "Authorization: Bearer {}", methods: [GET], paths: ["/v1/a*/**"]}\n`,
    );
    const environment = {
      LONGHAUL_CONFIG: join(folder, "named.yaml"),
      LONGHAUL_KEY_GOOD: VALUE,
      LONGHAUL_KEY_BAD: "another-value",
      LONGHAUL_KEY_ODD: VALUE,
      LONGHAUL_KEY_AWAY: VALUE,
      LONGHAUL_KEY_API: VALUE,
    };
    const { sandbox } = agentConfigSchema.parse({ sandbox: { caCerts: authority } });
    const found = await keyChecks(sandbox, environment, folder);
    expect(
      found.map(({ name, ok, found: text }) => [name, ok, text.replaceAll(String(port), "PORT")]),
    ).toEqual([
      ["key good", true, "accepted by localhost:PORT (200)"],
      ["key bad", false, "refused by localhost:PORT (401)"],
      ["key odd", true, "localhost:PORT answers 404, which neither accepts nor refuses it"],
      ["key unset", true, "the key unset needs LONGHAUL_KEY_UNSET, which is not set"],
      ["key away", false, expect.stringMatching(/^localhost:1 is unreachable: .*ECONNREFUSED/)],
      ["key api", true, "accepted by localhost:PORT (200)"],
    ]);
    expect(JSON.stringify(found)).not.toContain(VALUE);
    expect(asked.toSorted()).toEqual(["HEAD /gone/", "HEAD /npm/", "HEAD /npm/", "HEAD /v1/"]);
  },
);
