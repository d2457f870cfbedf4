/** One set of certificate authorities: what one way out trusts, all do. */
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:https";
import { join } from "node:path";
import { afterEach, expect, it, vi } from "vitest";
import { createMcpAccess } from "../../activities/mcp/access.ts";
import { gitFetch } from "../../activities/process/remote-fetch.ts";
import { trustAuthorities } from "../../activities/process/authorities.ts";
import { createOutgoing } from "../../activities/process/outgoing-fetch.ts";
import { childEnvironment } from "../../client/setup/processes.ts";
import { readWorkerConfig } from "../../worker/config.ts";
import { noticeSender } from "../../worker/send-notice.ts";
import { emptyFolder } from "../support/empty-folder.ts";
import { listen } from "../support/listen.ts";
import { issueCertificate } from "../support/private-authority.ts";

const VARIABLES = ["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO"];
afterEach(() => vi.unstubAllEnvs());

it.each(VARIABLES)("an authority in %s is trusted by every way out, and not without it", async (variable) => {
  const { authority, key, certificate } = issueCertificate();
  const server = createServer({ key: readFileSync(key), cert: readFileSync(certificate) }, (_asked, answer) =>
    answer.end("{}"),
  );
  const url = `https://localhost:${await listen(server)}/`;
  const ways = {
    model: async () => {
      const { request } = await createOutgoing();
      const asked = { method: "POST", headers: new Headers(), body: "{}", signal: null };
      (await request(url, asked)).body.resume();
    },
    mcp: async () => void (await (await createOutgoing()).fetch(url)),
    forge: async () => void (await gitFetch(url)),
    notices: async () =>
      noticeSender(url)(
        { id: "n" } as Parameters<ReturnType<typeof noticeSender>>[0],
        new AbortController().signal,
      ),
  };
  for (const [way, go] of Object.entries(ways)) await expect(go(), way).rejects.toThrow();
  vi.stubEnv(variable, authority);
  for (const [way, go] of Object.entries(ways)) await expect(go(), way).resolves.toBeUndefined();
});

it.each(VARIABLES)("a file of %s that cannot be used ends a worker's start with that name", (variable) => {
  const wrong = join(emptyFolder(), "wrong.pem");
  const start = (path: string) => () =>
    readWorkerConfig({ DATABASE_URL: "postgres://h/d", [variable]: path });
  expect(start(wrong)).toThrow(`${variable} names ${wrong}, which cannot be read (ENOENT)`);
  writeFileSync(wrong, "no certificate");
  expect(start(wrong)).toThrow(`${variable} names ${wrong}, which holds no certificate in PEM`);
  writeFileSync(wrong, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
  expect(start(wrong)).toThrow(`${variable} names ${wrong}, in which a certificate cannot be read`);
});

it("the programs that we start get all of them, and so does a worker", () => {
  const environment = Object.fromEntries(VARIABLES.map((name) => [name, "/x"]));
  for (const purpose of ["installer", "dockerd", "worker"] as const)
    expect(childEnvironment(purpose, environment)).toEqual(environment);
  expect(createMcpAccess(environment).base).toEqual(environment);
});

it("the usual authorities stay trusted", async () => {
  const { getCACertificates } = await import("node:tls");
  const before = getCACertificates("default");
  trustAuthorities({ SSL_CERT_FILE: issueCertificate().authority });
  expect(getCACertificates("default")).toEqual(expect.arrayContaining(before));
});
