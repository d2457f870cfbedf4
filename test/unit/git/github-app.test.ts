import { generateKeyPairSync } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { createGitAccess, type GitAccess } from "../../../activities/git/git-access.ts";
import { lsRemote } from "../../../activities/git/remote.ts";
import { createSanitizer } from "../../../activities/redaction/sanitizer.ts";
import { checkRepository } from "../../../client/setup/repository-check.ts";
import { sessionGitSchema } from "../../../activities/config/git-settings.ts";
import { readWorkerConfig } from "../../../worker/config.ts";
import { createFakeForge } from "../../support/fake-forge.ts";
import { createFakeGitHubApp, type FakeGitHubApp } from "../../support/fake-github-app.ts";
import { makeRemote, serveGit, type GitServer, type Remote } from "../../support/remotes.ts";
import { emptyFolder } from "../../support/empty-folder.ts";

const MINUTE_MS = 60_000;

let clock: Date;
let app: FakeGitHubApp;
let remote: Remote;
let server: GitServer;
let root: string;
let url: string;
beforeEach(async () => {
  clock = new Date();
  app = createFakeGitHubApp(() => clock);
  remote = makeRemote();
  root = emptyFolder();
  writeFileSync(join(root, "app.pem"), app.key);
  server = await serveGit(remote, app.takes, createFakeForge(app, () => ["main"]).handle);
  url = `${server.origin}/acme/app.git`;
});

const environment = (own: Readonly<Record<string, string>> = {}) => ({
  PATH: process.env["PATH"],
  LONGHAUL_GIT_FOLDER: root,
  LONGHAUL_GITHUB_APP_ID: app.id,
  LONGHAUL_GITHUB_APP_KEY_FILE: join(root, "app.pem"),
  LONGHAUL_GITHUB_APP_URL: server.origin,
  ...own,
});
const access = (own?: Readonly<Record<string, string>>): GitAccess =>
  createGitAccess(environment(own), () => clock);

describe("the worker's GitHub App", () => {
  it("provides a token for the repository alone, kept until five minutes before it expires", async () => {
    const git = access();
    const [first, same] = await Promise.all([git.tokenFor(url), git.tokenFor(url)]);
    expect(same).toBe(first);
    expect(app.issued).toMatchObject([{ value: first, repositories: ["app"] }]);
    expect(await lsRemote(git, url)).toMatchObject({ defaultBranch: "main" });
    clock = new Date(clock.getTime() + 54 * MINUTE_MS);
    expect(await git.tokenFor(url)).toBe(first);
    clock = new Date(clock.getTime() + 2 * MINUTE_MS);
    expect(await git.tokenFor(url)).not.toBe(first);
    expect(app.issued).toHaveLength(2);
  });

  it("has its tokens masked as soon as they are issued", async () => {
    const git = access();
    const sanitizer = createSanitizer([], git.madeSecrets);
    const early = sanitizer.stream();
    const token = (await git.tokenFor(url)) ?? "";
    expect(token).toMatch(/^ghs_/);
    // Split, so that the vendor's token format alone would not reveal it.
    const inside = token.slice(4);
    expect(sanitizer.clean(`x ${token} y`)).toBe("x [masked] y");
    expect(sanitizer.clean(Buffer.from(token).toString("base64"))).not.toContain(
      Buffer.from(inside).toString("base64").slice(4, 30),
    );
    expect(early.push("plain") + early.end()).toBe("plain");
  });

  it("comes after a host's variable, and before the one for all hosts", async () => {
    expect(await access({ LONGHAUL_GIT_TOKEN_127_0_0_1: "own" }).tokenFor(url)).toBe("own");
    expect(await access({ LONGHAUL_GIT_TOKEN: "all" }).tokenFor(url)).toMatch(/^ghs_/);
  });

  it("signs only for its own server", async () => {
    const git = access({ LONGHAUL_GIT_TOKEN: "all" });
    const other = await serveGit(remote, "all", (asked) =>
      Promise.resolve(asked.url?.startsWith("/api/") === true && expect.fail("was asked")),
    );
    expect(await git.tokenFor(`${other.origin}/acme/app.git`)).toBe("all");
    expect(await git.tokenFor(`${server.origin.replace("http:", "https:")}/acme/app.git`)).toBe("all");
    expect(git.hasToken("https://gitlab.com/acme/app")).toBe(true);
    expect(access().hasToken("https://gitlab.com/acme/app")).toBe(false);
  });
});

const check = (own: Readonly<Record<string, string>>) =>
  checkRepository(sessionGitSchema.parse({ url, push: "end" }), {}, environment(own));

describe("a GitHub App without a token", () => {
  it("ends the start with code 4 if it is not installed on the repository", async () => {
    app.installedOn.splice(0);
    await expect(check({})).rejects.toMatchObject({
      exitCode: 4,
      message: expect.stringMatching(/GitHub App 314159 has no access to acme\/app: .*404/) as string,
      fix: expect.stringMatching(/Install it for that repository.*LONGHAUL_GIT_TOKEN_127_0_0_1/) as string,
    });
  });

  it("ends the start if the key belongs to another App", async () => {
    const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
    writeFileSync(join(root, "app.pem"), privateKey.export({ type: "pkcs8", format: "pem" }));
    await expect(check({})).rejects.toMatchObject({
      exitCode: 4,
      message: expect.stringContaining("is not recognised") as string,
    });
  });

  it.each([
    [
      "is missing",
      { LONGHAUL_GITHUB_APP_KEY_FILE: "/nowhere/app.pem" },
      /app.pem\) cannot be read \(ENOENT\)/,
    ],
    ["is no key", { LONGHAUL_GITHUB_APP_KEY_FILE: "/etc/hostname" }, /is not a private key in PEM/],
    [
      "is not named",
      { LONGHAUL_GITHUB_APP_KEY_FILE: "" },
      /KEY_FILE; LONGHAUL_GITHUB_APP_KEY_FILE is not set/,
    ],
    ["has no App", { LONGHAUL_GITHUB_APP_ID: "" }, /KEY_FILE; LONGHAUL_GITHUB_APP_ID is not set/],
  ])("ends start and worker if the key %s", async (_how, own, words) => {
    await expect(check(own)).rejects.toMatchObject({
      exitCode: 4,
      message: expect.stringMatching(words) as string,
    });
    const start = () => readWorkerConfig({ ...environment(own), DATABASE_URL: "postgres://h/d" });
    expect(start).toThrow(words);
    expect(start).toThrow(expect.objectContaining({ name: "ServiceMissing" }));
  });

  it("is asked again if GitHub was unreachable", async () => {
    await server.close();
    const found = await lsRemote(access(), url);
    expect(found).toMatchObject({ trouble: { kind: "away" } });
  });
});
