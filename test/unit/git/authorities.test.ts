/** Git trusts the authorities that Node was told to trust. */
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { rootCertificates } from "node:tls";
import { expect, it } from "vitest";
import { createGitAccess } from "../../../activities/git/git-access.ts";
import { lsRemote } from "../../../activities/git/remote.ts";
import { checkGit } from "../../../temporal/probe.ts";
import { ServiceMissing } from "../../../temporal/service-missing.ts";
import { emptyFolder } from "../../support/empty-folder.ts";
import { behindTls, issueCertificate } from "../../support/private-authority.ts";
import { makeRemote, serveGit } from "../../support/remotes.ts";

it.each(["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO"])(
  "a forge whose authority is in %s is trusted, and not without it, which the fix says",
  async (variable) => {
    const { authority, key, certificate } = issueCertificate();
    const plain = await serveGit(makeRemote(), "password");
    const url = `${await behindTls(plain.origin, key, certificate)}/acme/app.git`;
    const environment = {
      PATH: process.env["PATH"],
      LONGHAUL_GIT_FOLDER: emptyFolder(),
      LONGHAUL_GIT_TOKEN: "password",
    };
    expect(await lsRemote(createGitAccess({ ...environment, [variable]: authority }), url)).toMatchObject({
      defaultBranch: "main",
    });
    expect(await lsRemote(createGitAccess(environment), url)).toMatchObject({
      trouble: {
        kind: "refused",
        message: expect.stringMatching(/certificate/i) as string,
        fix: expect.stringContaining("NODE_EXTRA_CA_CERTS") as string,
      },
    });
  },
);

it("NODE_EXTRA_CA_CERTS adds to the usual authorities, or to SSL_CERT_FILE's, in our own file", () => {
  const folder = emptyFolder();
  const [extra, only] = [join(folder, "extra.pem"), join(folder, "only.pem")];
  writeFileSync(extra, "EXTRA");
  writeFileSync(only, "ONLY");
  const fileFor = (more: Readonly<Record<string, string>>) =>
    createGitAccess({ LONGHAUL_GIT_FOLDER: folder, NODE_EXTRA_CA_CERTS: extra, ...more }).trust()[
      "GIT_SSL_CAINFO"
    ] ?? "";
  expect(readFileSync(fileFor({}), "utf8")).toContain(rootCertificates[0]);
  expect(readFileSync(fileFor({}), "utf8")).toContain("EXTRA");
  expect(statSync(fileFor({})).mode & 0o777).toBe(0o600);
  expect(readFileSync(fileFor({ SSL_CERT_FILE: only }), "utf8")).toBe("ONLY\nEXTRA\n");
});

it.each([
  ["LONGHAUL_GIT_FOLDER", (file: string) => ({ LONGHAUL_GIT_FOLDER: join(file, "git") })],
  ["HOME", (file: string) => ({ HOME: file })],
  ["XDG_DATA_HOME", (file: string) => ({ XDG_DATA_HOME: join(file, "data") })],
  [
    "NODE_EXTRA_CA_CERTS",
    (file: string) => ({ LONGHAUL_GIT_FOLDER: emptyFolder(), NODE_EXTRA_CA_CERTS: `${file}.gone` }),
  ],
])("a worker whose %s cannot be used does not start, and names it", async (variable, environment) => {
  const file = join(emptyFolder(), "file");
  writeFileSync(file, "");
  const failed = checkGit(createGitAccess(environment(file)));
  await expect(failed).rejects.toThrow(ServiceMissing);
  await expect(failed).rejects.toThrow(variable);
  await expect(
    checkGit(createGitAccess({ LONGHAUL_GIT_FOLDER: join(emptyFolder(), "new") })),
  ).resolves.toBeUndefined();
});
