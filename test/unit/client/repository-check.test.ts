import { afterAll, describe, expect, it, onTestFinished } from "vitest";
import { gitConfigSchema, type SessionGit } from "../../../activities/config/git-settings.ts";
import { sessionGit } from "../../../client/sessions/run-flags.ts";
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

  it("a branch that the remote has in the way of the session's is 2", async () => {
    const taken = makeRemote(undefined, { end: onTestFinished });
    taken.commit("longhaul", { a: "a" });
    const url = taken.url;
    await expect(check({ url, push: "end" })).rejects.toMatchObject({
      exitCode: 2,
      message: expect.stringContaining("has a branch longhaul, so it cannot have a branch") as string,
    });
    await expect(check({ url })).resolves.toBeUndefined();
    await expect(check({ url, push: "end", branch: "other" })).resolves.toBeUndefined();
    await expect(check({ url, push: "end", branch: "longhaul/a" })).rejects.toMatchObject({ exitCode: 2 });
  });

  it("a server that does not answer is 4, and no token is proposed", async () => {
    await expect(check({ url: "https://127.0.0.1:1/acme/app.git" }, right)).rejects.toMatchObject({
      exitCode: 4,
      fix: "Check the address and the network.",
    });
  });

  it("a pull request without a token for the forge is 4, with the host and the variable", async () => {
    const open = await serveGit(remote, () => true, undefined, onTestFinished);
    const onForge = { url: `${open.origin}/acme/app.git`, forge: "github", pr: "draft" } as const;
    await expect(check(onForge)).rejects.toMatchObject({
      exitCode: 4,
      fix: expect.stringContaining("LONGHAUL_GIT_TOKEN_127_0_0_1") as string,
    });
    await expect(check(onForge, {}, false)).resolves.toBeUndefined();
    await expect(check(onForge, right)).resolves.toBeUndefined();
  });

  it("a pull request on a server that is no known forge is 2, unless the server says what it is", async () => {
    const known = await serveGit(
      remote,
      () => true,
      (asked, answer) => {
        if (asked.url !== "/api/v1/version") return Promise.resolve(false);
        answer.writeHead(200, { "content-type": "application/json" }).end('{"version":"1.24.6"}');
        return Promise.resolve(true);
      },
      onTestFinished,
    );
    const onServer = ({ origin }: { readonly origin: string }) =>
      ({ url: `${origin}/acme/app.git`, pr: "draft" }) as const;
    await expect(check(onServer(known), right)).resolves.toBeUndefined();
    const unknown = {
      exitCode: 2,
      message: expect.stringContaining("not known which forge") as string,
      fix: expect.stringContaining("git.forge") as string,
    };
    await expect(check(onServer(server), right)).rejects.toMatchObject(unknown);
    // Only the workers may reach it.
    await expect(check(onServer(known), right, false)).rejects.toMatchObject(unknown);
    await expect(check({ ...onServer(server), pr: "none" }, right)).resolves.toBeUndefined();
    await expect(check({ ...onServer(server), forge: "gitea" }, right)).resolves.toBeUndefined();
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
    const flags = { repo: "https://github.com/a/b", ref: "v1", branch: "mine", pr: "draft" } as const;
    expect(sessionGit(flags, defaults)).toMatchObject({
      url: "https://github.com/a/b",
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
    [{ repo: "https://host/a", pr: "draft" }, /No pull request .* not known which forge/],
    [{ repo: "file:///srv/a.git", pr: "ready" }, /No pull request .* it is a folder/],
  ] as const)("%o is refused", (flags, words) => {
    expect(() => sessionGit(flags, defaults)).toThrow(words);
  });
});
