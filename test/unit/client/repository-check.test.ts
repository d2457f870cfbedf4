import { afterAll, describe, expect, it } from "vitest";
import { gitConfigSchema, type SessionGit } from "../../../activities/config/git-settings.ts";
import { sessionGit } from "../../../client/sessions/git-flags.ts";
import { checkRepository } from "../../../client/setup/repository-check.ts";
import { makeRemote, serveGit } from "../../support/remotes.ts";

const defaults = gitConfigSchema.parse({});
const PATH = process.env["PATH"];

const remote = makeRemote(undefined, { end: afterAll });
const server = await serveGit(remote, "right-password", undefined, afterAll);

const check = (more: Partial<SessionGit>, environment: Readonly<Record<string, string>> = {}, setup = true) =>
  checkRepository(
    { ...defaults, url: `${server.origin}/acme/app.git`, ...more },
    { setup },
    { PATH, ...environment },
  );
const right = { LONGHAUL_GIT_TOKEN: "right-password" };

describe("before anything starts", () => {
  it("a private repository without a credential is 4, with the host and the variable", async () => {
    await expect(check({})).rejects.toMatchObject({
      exitCode: 4,
      message: expect.stringContaining("127.0.0.1") as string,
      fix: expect.stringContaining("LONGHAUL_GIT_TOKEN_127_0_0_1") as string,
    });
    await expect(check({}, { LONGHAUL_GIT_TOKEN: "wrong-password" })).rejects.toMatchObject({ exitCode: 4 });
    await expect(check({}, right)).resolves.toBeUndefined();
    await expect(check({}, { LONGHAUL_GIT_TOKEN_127_0_0_1: "right-password" })).resolves.toBeUndefined();
  });

  it("a missing repository is 4; a missing branch, or a push to the default branch, is 2", async () => {
    const gone = check({ url: `${server.origin}/acme/gone.git` }, right);
    await expect(gone).rejects.toMatchObject({ exitCode: 4 });
    await expect(check({ ref: "gone" }, right)).rejects.toMatchObject({ exitCode: 2 });
    const onMain = { branch: "main", push: "end" } as const;
    await expect(check(onMain, right)).rejects.toMatchObject({ exitCode: 2 });
    await expect(check({ ...onMain, allowDefaultBranch: true }, right)).resolves.toBeUndefined();
  });

  it("a server that does not answer is 4, and no token is proposed", async () => {
    await expect(check({ url: "https://127.0.0.1:1/acme/app.git" }, right)).rejects.toMatchObject({
      exitCode: 4,
      fix: "Check the address and the network.",
    });
  });

  it("nothing is checked if only the workers have the credentials", async () => {
    await expect(check({}, {}, false)).resolves.toBeUndefined();
    await expect(check({}, { LONGHAUL_NO_SETUP: "1" })).resolves.toBeUndefined();
    await expect(check({}, { LONGHAUL_GIT_TOKEN: "wrong-password" }, false)).rejects.toMatchObject({
      exitCode: 4,
    });
  });
});

describe("the flags about a repository", () => {
  it("override the configuration, and a pull request implies its push", () => {
    const flags = { repo: "https://host.example/a/b", ref: "v1", branch: "mine", pr: "draft" } as const;
    expect(sessionGit(flags, defaults)).toMatchObject({
      url: "https://host.example/a/b",
      ref: "v1",
      branch: "mine",
      push: "end",
      pr: "draft",
    });
    expect(sessionGit({}, defaults)).toBeUndefined();
  });

  it.each([
    [{ push: "end" }, /none is named/],
    [{ repo: "https://host/a", workspace: "." }, /exclude each other/],
    [{ repo: "https://me:pw@host/a" }, /credential/],
    [{ repo: "https://host/a", branch: "a..b" }, /--branch/],
    [{ repo: "https://host/a", ref: "-x" }, /--ref/],
  ] as const)("%o is refused", (flags, words) => {
    expect(() => sessionGit(flags, defaults)).toThrow(words);
  });
});
