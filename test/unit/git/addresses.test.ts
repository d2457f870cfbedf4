import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  branchName,
  toBranchName,
  repositoryAddress,
  parseForge,
} from "../../../activities/config/git-settings.ts";
import { isNamed, isSameServer } from "../../../activities/config/repository-place.ts";
import { createGitAccess } from "../../../activities/git/git-access.ts";
import { remoteTrouble } from "../../../activities/git/remote.ts";
import { credentialFor, git, gitEnvironment, GitFailed } from "../../../activities/git/run-git.ts";
import { secretsOf } from "../../../activities/redaction/secret-values.ts";

describe("the address of a repository", () => {
  it.each([
    ["https://github.com/acme/app.git", "github.com", "http"],
    ["http://127.0.0.1:8080/app", "127.0.0.1", "http"],
    ["ssh://git@host.example/app", "host.example", "ssh"],
    ["git@github.com:acme/app.git", "github.com", "ssh"],
    ["file:///srv/app.git", undefined, "file"],
  ])("%s is taken", (url, host, kind) => {
    expect(repositoryAddress(url)).toEqual({ url, host, kind });
  });

  it.each([
    "https://user:secret@github.com/acme/app",
    "https://token@github.com/acme/app",
    "https://ghp_0123456789abcdefghij0123456789abcdef@github.com/acme/app",
    "https://glpat-0123456789abcdefghij@gitlab.com/acme/app",
    "https://0123456789abcdef0123456789abcdef01234567@forge.test/acme/app",
    "https://user:@github.com/acme/app?x=1",
    "https://github.com/acme/app?access_token=x",
    "ext::sh -c touch% /tmp/x",
    "--upload-pack=touch",
    "ssh://-oProxyCommand=x/app",
    "git@-oProxyCommand=x:app",
    "/srv/app",
    "git://host/app",
    String.raw`https://github.com\@evil.test/acme/app`,
    String.raw`http://forge.test\@127.0.0.1:8080/acme/app`,
    String.raw`https://forge.test\evil.test/app`,
    String.raw`ssh://git@forge.test\@evil.test/app`,
    String.raw`https://forge.test/acme\..\app`,
    "https:forge.test/acme/app",
    "https:/forge.test/acme/app",
    "https:///forge.test/acme/app",
    "https://forge%2etest/acme/app",
    "https://@forge.test@evil.test/app",
  ])("%s is refused", (url) => {
    expect(repositoryAddress(url)).toHaveProperty("wrong");
  });
});

it("an address that is accepted is of the server that git asks", () => {
  const piece = fc.constantFrom(
    ..."http https ssh file : / // @ \\ %2f %40 [::1] a.test b.test 127.0.0.1 :80 user git x # ? ;".split(
      " ",
    ),
  );
  // As git's url.c and curl do: the server is behind the last @ in front of the first slash.
  const asked = (url: string) => /^[a-z]+:\/\/([^/?#]*@)?([^/?#@]*?)(:\d*)?([/?#]|$)/i.exec(url)?.[2];
  fc.assert(
    fc.property(
      fc.constantFrom("https://", "http://", "ssh://", ""),
      fc.array(piece, { maxLength: 8 }),
      (scheme, rest) => {
        const url = `${scheme}${rest.join("")}`;
        const address = repositoryAddress(url);
        if ("wrong" in address || address.kind === "file" || !address.url.includes("://")) return;
        expect(asked(address.url)?.toLowerCase(), url).toBe(address.host?.toLowerCase());
      },
    ),
    { numRuns: 20_000 },
  );
});

it.each([
  ["https://org@dev.azure.com/org/project/_git/app", "https://dev.azure.com/org/project/_git/app"],
  ["https://some.user@bitbucket.org/acme/app.git", "https://bitbucket.org/acme/app.git"],
  ["http://me@127.0.0.1:8080/app", "http://127.0.0.1:8080/app"],
])("a user's name without a password is left out: %s", (text, url) => {
  expect(repositoryAddress(text)).toMatchObject({ url, kind: "http" });
  expect(isNamed({ url }, text)).toBe(true);
});

it.each([
  [
    "ssh://git@ssh.github.com:443/acme/app.git",
    "github",
    "https://api.github.com",
    "LONGHAUL_GIT_TOKEN_GITHUB_COM",
  ],
  [
    "ssh://git@altssh.gitlab.com:443/acme/tools/app.git",
    "gitlab",
    "https://gitlab.com/api/v4",
    "LONGHAUL_GIT_TOKEN_GITLAB_COM",
  ],
  ["git@SSH.GitHub.com:acme/app.git", "github", "https://api.github.com", "LONGHAUL_GIT_TOKEN_GITHUB_COM"],
])("a forge's name for ssh on the port of HTTPS is the forge: %s", async (url, kind, api, variable) => {
  expect(parseForge(url, "auto")).toMatchObject({
    kind,
    api,
    project: expect.stringMatching(/^acme\/.*app$/) as string,
  });
  expect(await createGitAccess({ [variable]: "own" }).tokenFor(url)).toBe("own");
  expect(isSameServer(url, `https://${new URL(api).hostname.replace("api.", "")}/acme/app`)).toBe(true);
});

it("accepts branch names that Git accepts, and inserts the session's id", () => {
  expect(["longhaul/{id}", "main", "a/b-c.d"].filter((name) => !branchName.safeParse(name).success)).toEqual(
    [],
  );
  const wrong = ["-x", "a..b", "a b", "a/.b", "x.lock", "a~1", "/a", "a/", "@", "a@{b", "a\\b", ""];
  expect(wrong.filter((name) => branchName.safeParse(name).success)).toEqual([]);
  expect(toBranchName({ branch: "longhaul/{id}" }, "a1b2")).toBe("longhaul/a1b2");
  const scheduled = toBranchName({ branch: "longhaul/{id}" }, "nightly-2026-11-23T05:00:00Z");
  expect(scheduled).toBe("longhaul/nightly-2026-11-23T050000Z");
  expect(branchName.safeParse(scheduled).success).toBe(true);
});

describe("a token", () => {
  const access = createGitAccess({
    LONGHAUL_GIT_TOKEN: "everyone",
    LONGHAUL_GIT_TOKEN_GITHUB_COM: "me:only-github",
    AWS_SECRET_ACCESS_KEY: "other",
    PATH: "/usr/bin:/bin",
  });

  it("for a host takes precedence over the one for all hosts", async () => {
    expect(await access.tokenFor("https://github.com/acme/app")).toBe("me:only-github");
    expect(await access.tokenFor("https://gitlab.com/acme/app")).toBe("everyone");
    expect([access.hasToken("git@gitlab.com:acme/app"), access.hasToken("file:///srv/app")]).toEqual([
      true,
      false,
    ]);
  });

  it("is passed to git for the call's host alone, with nothing else of the environment", async () => {
    const valuesFor = async (url: string) =>
      Object.values(gitEnvironment(access, await credentialFor(access, url)));
    const values = await valuesFor("https://github.com/acme/app");
    expect(values).toContain("only-github");
    expect(values.join(" ")).not.toMatch(/everyone|other/);
    expect((await valuesFor("file:///srv/app")).join(" ")).not.toMatch(/everyone|only-github/);
  });

  it("counts as a secret, whatever its variable's suffix", () => {
    expect(secretsOf({ LONGHAUL_GIT_TOKEN_GITHUB_COM: "me:only-github" })).toContain("only-github");
  });
});

it("distinguishes a missing credential, a missing repository and an unreachable host", () => {
  const url = "https://github.com/acme/app";
  const kind = (err: string) => remoteTrouble(url, { err }).kind;
  expect(kind("fatal: could not read Username for 'https://github.com': terminal prompts disabled")).toBe(
    "credential",
  );
  expect(kind("fatal: unable to access 'https://github.com/': The requested URL returned error: 403")).toBe(
    "credential",
  );
  expect(kind("remote: Repository not found.\nfatal: repository 'https://github.com/a/b/' not found")).toBe(
    "unknown",
  );
  expect(kind("fatal: unable to access 'https://x/': Could not resolve host: x")).toBe("away");
  expect(remoteTrouble(url, { err: "fatal: Authentication failed" }).fix).toContain(
    "LONGHAUL_GIT_TOKEN_GITHUB_COM",
  );
});

it("lets a failed command throw GitFailed, and runs git without hooks", async () => {
  const access = createGitAccess({ PATH: process.env["PATH"] });
  await expect(git(access, ["rev-parse", "HEAD"], { cwd: "/" })).rejects.toThrow(GitFailed);
  expect(await git(access, ["config", "--get", "core.hooksPath"])).toBe("/dev/null");
});

it("an address that no client should have stored is not tried again", () => {
  const err = "fatal: transport 'ext' not allowed";
  expect(remoteTrouble("ext::sh -c id", { err })).toMatchObject({ kind: "unknown" });
});
