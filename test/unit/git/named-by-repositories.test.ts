/** What a stranger's branch or a session's own commits name: neither gets a credential, and the latter direct no request. */
import { createServer } from "node:http";
import { beforeEach, expect, it } from "vitest";
import type { NetworkRule } from "../../../activities/config/repository-place.ts";
import { fetchParts, unpushedSubmodule } from "../../../activities/git/fetch-parts.ts";
import { createGitAccess } from "../../../activities/git/git-access.ts";
import { createLfsStore, uploadStore } from "../../../activities/git/lfs-store.ts";
import { updateMirror } from "../../../activities/git/mirror.ts";
import { emptyFolder } from "../../support/empty-folder.ts";
import { listen } from "../../support/listen.ts";
import { makeRemote, serveGit, type Remote } from "../../support/remotes.ts";

const { signal } = new AbortController();
const entry = (url: string, name = "lib") => `[submodule "${name}"]\n\tpath = ${name}\n\turl = ${url}\n`;
const bridge: NetworkRule = { network: "bridge", domains: [] };
const none: NetworkRule = { network: "none", domains: [] };
let app: Remote;
let secret: Remote;
let folder: string;
beforeEach(() => {
  folder = emptyFolder();
  app = makeRemote();
  secret = makeRemote({ "secret.txt": "secret\n" }, { name: "acme/secret.git", beside: app });
});
const access = (more: Readonly<Record<string, string>> = {}) =>
  createGitAccess({ PATH: process.env["PATH"], LONGHAUL_GIT_FOLDER: folder, ...more });

it.each([
  ["LONGHAUL_GIT_TOKEN", "its full address", (origin: string) => `${origin}/acme/secret.git`],
  ["LONGHAUL_GIT_TOKEN_127_0_0_1", "a relative address", () => "../secret.git"],
  ["LONGHAUL_GIT_TOKEN_127_0_0_1", "a detour", (origin: string) => `${origin}/acme/app.git/../secret.git`],
])(
  "with %s, a branch that names another private repository of the host by %s does not get it",
  async (variable, _how, address) => {
    const server = await serveGit(app, "password");
    const url = `${server.origin}/acme/app.git`;
    const git = access({ [variable]: "password" });
    const links = { lib: secret.at("main") ?? "" };
    const commit = app.commit("stranger", { ".gitmodules": entry(address(server.origin)) }, links);
    const place = `${server.origin.replace("http://", "")}/acme/secret`;
    const from = { mirror: await updateMirror(git, url), commit };
    const opened = await fetchParts(git, { url, also: [place] }, from, signal);
    const isDetour = address(server.origin).includes("app.git/..");
    expect(opened).toEqual(isDetour ? expect.objectContaining({ isPassing: false }) : [expect.anything()]);
    // Nor from the worker's copy, which the person's word has just made.
    const closed = await fetchParts(git, { url }, from, signal);
    expect(closed).toMatchObject({
      refused: expect.stringContaining("git.also") as string,
      isPassing: false,
    });
    if (!isDetour)
      expect(closed).toMatchObject({ refused: expect.stringContaining(`git.also: [${place}]`) as string });
  },
);

it("a redirect of a repository that a branch names opens no other one of the host", async () => {
  const server = await serveGit(app, "password", async (request, response) => {
    const target = request.url?.startsWith("/acme/public.git") === true;
    if (target) response.writeHead(302, { location: request.url?.replace("public", "secret") }).end();
    return Promise.resolve(target);
  });
  const url = `${server.origin}/acme/app.git`;
  const git = access({ LONGHAUL_GIT_TOKEN_127_0_0_1: "password" });
  const commit = app.commit(
    "stranger",
    { ".gitmodules": entry("../public.git") },
    { lib: secret.at("main") ?? "" },
  );
  const from = { mirror: await updateMirror(git, url), commit };
  expect(await fetchParts(git, { url }, from, signal)).toHaveProperty("refused");
});

/** Counts what a server is asked that nobody but a session's commits named. */
async function bystander() {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url ?? "");
    response.writeHead(404).end();
  });
  return { asked, origin: `http://127.0.0.1:${await listen(server)}` };
}

it.each([
  ["another host", (origin: string) => `${origin}/acme/lib.git`],
  ["a host named by a file's content", () => "https://content-of-a-file.evil.test/lib.git"],
  ["a repository beside its own", () => "../secret.git"],
  ["an ssh server", () => "git@8.8.8.8:acme/lib.git"],
  ["a folder of the worker", () => "file:///etc"],
])("a submodule that a session's commits moved to %s directs no request", async (_where, address) => {
  const { asked, origin } = await bystander();
  const url = "http://localhost:9/acme/app.git";
  const base = app.commit("main", { ".gitmodules": entry("../lib.git") }, { lib: app.at("main") ?? "" });
  const commit = app.commit(
    "main",
    { ".gitmodules": entry(address(origin)) },
    { lib: secret.at("main") ?? "" },
  );
  const relay = { access: access(), folder: app.folder };
  const refused = await unpushedSubmodule(relay, { named: { url }, network: bridge, base, commit }, signal);
  expect(refused).toMatchObject({
    refused: expect.stringMatching(/is not contacted; .*git\.also/) as string,
    isPassing: false,
  });
  expect(asked).toEqual([]);
  // The person's word is enough, and then the remote is asked.
  const also = [`${origin.replace("http://", "")}/acme/**`];
  await unpushedSubmodule(relay, { named: { url, also }, network: bridge, base, commit }, signal);
  if (address(origin).startsWith("http:")) expect(asked).not.toEqual([]);
});

it.each(["lfs.url", "lfs.pushurl", "remote.origin.lfsurl", "remote.x.lfspushurl"])(
  "a store that a session's commits named by %s gets no request",
  async (key) => {
    const url = "https://8.8.8.8/acme/app.git";
    const named = (store: string) => {
      const [section = "", ...rest] = key.split(".");
      const head = rest.length > 1 ? `${section} "${rest[0]}"` : section;
      return { ".lfsconfig": `[${head}]\n\t${rest.at(-1)} = ${store}\n` };
    };
    const base = app.commit("main", named("https://8.8.4.4/store"));
    const commit = app.commit("main", named("https://8.8.4.5/store"));
    const to = { named: { url }, network: bridge, url, folder: app.folder };
    await expect(uploadStore(access(), { ...to, base, commit }, signal)).rejects.toThrow(
      /8\.8\.4\.5.*is not contacted; .*git\.also: \[8\.8\.4\.5\/store\]/,
    );
    await expect(uploadStore(access(), { ...to, base: undefined, commit: base }, signal)).rejects.toThrow(
      "is not contacted",
    );
    expect(await uploadStore(access(), { ...to, base, commit: base }, signal)).toHaveProperty("endpoint");
    const also = ["8.8.4.5/*"];
    expect(await uploadStore(access(), { ...to, named: { url, also }, base, commit }, signal)).toHaveProperty(
      "endpoint",
    );
  },
);

it("a session's network rule holds for its deliveries too, but for what the person named", async () => {
  const url = "https://8.8.8.8/acme/app.git";
  const commit = app.commit("main", { ".lfsconfig": "[lfs]\n\turl = https://8.8.4.4/store\n" });
  const store = (network: NetworkRule, also: readonly string[] = []) =>
    uploadStore(
      access(),
      { named: { url, also: [...also] }, network, url, folder: app.folder, base: commit, commit },
      signal,
    );
  await expect(store(none)).rejects.toThrow("sandbox.network does not let");
  await expect(store({ network: "listed", domains: ["8.8.8.8"] })).rejects.toThrow(
    "sandbox.network does not let",
  );
  expect(await store({ network: "listed", domains: ["8.8.4.4"] })).toHaveProperty("endpoint");
  expect(await store(none, ["8.8.4.4/store"])).toHaveProperty("endpoint");
  const own = app.commit("main", { ".lfsconfig": "[lfs]\n\turl = https://8.8.8.8/store\n" });
  const to = { named: { url }, network: none, url, folder: app.folder };
  expect(await uploadStore(access(), { ...to, base: own, commit: own }, signal)).toHaveProperty("endpoint");
});

it("a store's own server is asked for what the store offers, and a folder needs no network", async () => {
  const named = { url: "https://8.8.8.8/acme/app.git", also: ["10.0.0.7/store"] };
  const commit = app.commit("main", { ".lfsconfig": "[lfs]\n\turl = https://10.0.0.7/store\n" });
  const from = { named, url: named.url, folder: app.folder, commit };
  const store = await createLfsStore(access(), from, "download", signal);
  expect(await store.refused("https://10.0.0.7/")).toBeUndefined();
  expect(await store.refused("https://10.0.0.8/")).toContain("git.also: [10.0.0.8/**]");
  const links = { lib: "1".repeat(40) };
  const base = app.commit(
    "main",
    { ".gitmodules": entry("../secret.git") },
    { lib: secret.at("main") ?? "" },
  );
  const unpushed = app.commit("main", { x: "x" }, links);
  const relay = { access: access(), folder: app.folder };
  const what = { named: { url: app.url }, network: none, base, commit: unpushed };
  expect(await unpushedSubmodule(relay, what, signal)).toMatchObject({
    refused: expect.stringContaining("has to be on its own remote first") as string,
  });
});
