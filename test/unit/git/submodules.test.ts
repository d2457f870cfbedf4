import { createServer } from "node:http";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { fetchSubmodule } from "../../../activities/git/fetch-parts.ts";
import { createGitAccess } from "../../../activities/git/git-access.ts";
import { refusedRemote } from "../../../activities/git/remote.ts";
import { isNamed, type NamedRepositories } from "../../../activities/config/repository-place.ts";
import { isSafePath, readEntries, resolveUrl } from "../../../activities/git/submodules.ts";
import { makeRemote, serveGit } from "../../support/remotes.ts";
import { isPublicAddress } from "../../../activities/config/addresses.ts";
import { emptyFolder } from "../../support/empty-folder.ts";
import { listen } from "../../support/listen.ts";

it.each([
  ["https://host.test/acme/app.git", "../lib.git", "https://host.test/acme/lib.git"],
  ["https://host.test/acme/app.git/", "../../other/lib", "https://host.test/other/lib"],
  ["git@host.test:acme/app.git", "../lib.git", "git@host.test:acme/lib.git"],
  ["git@host.test:acme/app.git", "../../lib.git", "git@host.test:lib.git"],
  ["ssh://git@host.test:22/acme/app", "./lib", "ssh://git@host.test:22/acme/app/lib"],
  ["file:///srv/app.git", "../lib.git", "file:///srv/lib.git"],
  ["https://host.test/app.git", "../../../evil.test/lib", undefined],
  ["https://host.test/app.git", "..//evil.test/lib", "https://host.test/evil.test/lib"],
  ["https://host.test/app.git", "https://other.test/lib.git", "https://other.test/lib.git"],
])("beside %s, %s is %s", (repository, url, expected) => {
  expect(resolveUrl(repository, url)).toBe(expected);
});

it("accepts no name or path that leads elsewhere", () => {
  const wrong = [
    "",
    "..",
    "../x",
    "a/../b",
    "a//b",
    "/etc",
    "-x",
    "a/-x",
    ".git",
    "a/.GIT/hooks",
    "git~1",
    ".git ",
  ];
  expect([...wrong, ".g\u200cit", "a\\..\\b", "a\nb"].filter(isSafePath)).toEqual([]);
  expect(["lib", "libs/one two", ".github", "a.git"].filter((path) => !isSafePath(path))).toEqual([]);
});

it("reads entries as Git does: the last value counts", () => {
  const listed =
    "submodule.a.b.path\na\0submodule.a.b.url\n../one\0submodule.a.b.url\n../two\0core.editor\nx\0";
  expect([...readEntries(listed)]).toEqual([["a.b", { path: "a", url: "../two" }]]);
});

describe("an address in a repository", () => {
  const access = createGitAccess({ LONGHAUL_GIT_TOKEN: "all", LONGHAUL_GIT_TOKEN_10_0_0_7: "own" });
  const url = "https://192.168.1.5/acme/app.git";
  const also = ["10.0.0.7/lib", "192.168.1.5/acme/*", "192.168.1.5:8443/acme/*"];
  const why = (address: string, named: NamedRepositories = { url }) => refusedRemote(named, address);

  it.each([
    "ext::sh -c id",
    "--upload-pack=x",
    "file:///etc",
    "/etc",
    "http://192.168.1.5/acme/lib.git",
    "https://user:token@192.168.1.5/lib.git",
    "https://127.0.0.1/lib.git",
    "https://192.168.1.5:8443/acme/lib.git",
    "https://[::1]/lib.git",
    "https://[::ffff:10.0.0.1]/lib.git",
    "https://169.254.169.254/latest",
    "https://0x7f000001/lib.git",
    "https://localhost/lib.git",
    "git@10.0.0.8:lib.git",
    "git@192.168.1.5:other/lib.git",
    "git@8.8.8.8:acme/lib.git",
    "https://10.0.0.7/lib.git",
  ])("%s is refused", async (address) => {
    expect(await why(address)).toEqual(expect.any(String));
  });

  it("is allowed on the repository's server, on public hosts, and where the person said so", async () => {
    expect(await why("https://192.168.1.5/other/lib.git")).toBeUndefined();
    expect(await why("git@192.168.1.5:acme/app.git")).toBeUndefined();
    expect(await why("git@192.168.1.5:acme/lib.git", { url, also })).toBeUndefined();
    expect(await why("https://8.8.8.8/lib.git")).toBeUndefined();
    expect(await why("https://10.0.0.7/lib.git", { url, also })).toBeUndefined();
    expect(await why("file:///srv/lib.git", { url: "file:///srv/app.git" })).toBeUndefined();
    expect(await why("file:///opt/me/lib.git", { url: "file:///srv/app.git" })).toContain(
      "git.also: [/opt/me/lib]",
    );
  });

  it("gets no credential but for the repository and what the person opened, however spelled", async () => {
    const limited = access.limitedTo({ url, also });
    const tokens = async (...addresses: string[]) =>
      Promise.all(addresses.map((address) => limited.tokenFor(address)));
    const opened = [
      url,
      url.replace(".git", "/"),
      "https://192.168.1.5/acme/lib",
      "https://192.168.1.5/acme/lib/info/lfs",
    ];
    expect(await tokens(...opened)).toEqual(opened.map(() => "all"));
    const closed = [
      "https://192.168.1.5/other/lib.git",
      "https://192.168.1.5/acme/lib/deeper",
      "https://192.168.1.5/acme/../other/lib.git",
      "https://192.168.1.5/acme/%2e%2e/other",
      "https://192.168.1.5/acme/x%2f..%2fother",
      "https://192.168.1.5/acme/app.git/../../other/lib.git",
      "https://192.168.1.5/Acme/app.git",
      "http://192.168.1.5/acme/app.git",
      "http://192.168.1.5/acme/lib.git",
      "https://192.168.1.5:8443/acme/app.git",
      "https://192.168.1.5.evil.test/acme/app.git",
      "https://gitlab.com/acme/lib.git",
      "https://10.0.0.7/other.git",
    ];
    expect(await tokens(...closed)).toEqual(closed.map(() => undefined));
    expect(await tokens("https://10.0.0.7/lib.git")).toEqual(["own"]);
    // The token for all hosts goes to the repository's own server alone.
    const elsewhere = access.limitedTo({ url, also: ["gitlab.com/acme/*"] });
    expect(await elsewhere.tokenFor("https://gitlab.com/acme/lib.git")).toBeUndefined();
    expect(await limited.limitedTo({ url: "https://gitlab.com/x/y" }).tokenFor(url)).toBeUndefined();
  });

  it("has the person's word only for names that a pattern says, for any names and patterns", () => {
    const name = fc
      .stringMatching(/^[a-z][a-z0-9._-]{0,6}[a-z0-9]$/)
      .filter((text) => !text.endsWith(".git"));
    fc.assert(
      fc.property(
        fc.array(name, { minLength: 1, maxLength: 4 }),
        fc.array(name, { minLength: 1, maxLength: 4 }),
        (one, two) => {
          const at = (parts: readonly string[]) => `https://forge.test/${parts.join("/")}.git`;
          const by = (...patterns: string[]) => isNamed({ url, also: patterns }, at(one));
          expect(by(`forge.test/${one.join("/")}`)).toBe(true);
          expect(by(`other.test/${one.join("/")}`)).toBe(false);
          expect(by(`forge.test/${two.join("/")}`)).toBe(one.join("/") === two.join("/"));
          expect(by(`forge.test/${two.map(() => "*").join("/")}`)).toBe(one.length === two.length);
          expect(by(`forge.test/${two.join("/")}/**`)).toBe(one.join("/").startsWith(`${two.join("/")}/`));
        },
      ),
    );
  });
});

it("recognises addresses of the public internet", () => {
  expect(["8.8.8.8", "2606:4700::1111"].every(isPublicAddress)).toBe(true);
  const others = [
    "10.1.2.3",
    "127.0.0.1",
    "::1",
    "fd00::1",
    "::ffff:8.8.8.8",
    "2002::1",
    "100.100.100.200",
    "name",
  ];
  expect(others.filter(isPublicAddress)).toEqual([]);
});

it("a submodule's server cannot redirect the worker to another one", async () => {
  const remote = makeRemote();
  const root = emptyFolder();
  const inner = await serveGit(remote, () => true);
  const outer = createServer((request, response) => {
    response.writeHead(302, { location: `${inner.origin}${request.url}` }).end();
  });
  const port = await listen(outer, { host: "localhost" });
  const base = "http://192.0.2.1/acme/app.git";
  const access = createGitAccess({
    PATH: process.env["PATH"],
    LONGHAUL_GIT_FOLDER: root,
    LONGHAUL_GIT_TOKEN_LOCALHOST: "own-password",
  });
  const url = `http://localhost:${port}/acme/app.git`;
  const also = [`localhost:${port}/acme/*`];
  const submodule = { name: "lib", path: "lib", url, commit: remote.at("main") ?? "" };
  const { signal } = new AbortController();
  const fetched = await fetchSubmodule(
    access.limitedTo({ url: base }),
    { url: base, also },
    submodule,
    signal,
  );
  expect(fetched).toMatchObject({ refused: expect.stringContaining("the submodule") as string });
  expect(inner.seen).toEqual({ allowed: 0, refused: 0 });
  // A person's own address may redirect, as a renamed repository does.
  expect(await fetchSubmodule(access.limitedTo({ url }), { url }, submodule, signal)).toEqual(
    expect.any(String),
  );
});
