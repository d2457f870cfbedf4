import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { beforeEach, expect, it } from "vitest";
import { createGitAccess } from "../../../activities/git/git-access.ts";
import { fetchLfs } from "../../../activities/git/lfs.ts";
import { lfsObjectsOf, lfsObjectsSince, createLfsStore, send } from "../../../activities/git/lfs-store.ts";
import { updateMirror } from "../../../activities/git/mirror.ts";
import { createLfsServer, pointerOf } from "../../support/lfs-server.ts";
import { makeRemote, serveGit, type Remote } from "../../support/remotes.ts";
import { emptyFolder } from "../../support/empty-folder.ts";
import { listen } from "../../support/listen.ts";

const { signal } = new AbortController();
let root: string;
let remote: Remote;
beforeEach(() => {
  root = emptyFolder();
  remote = makeRemote();
});

const access = (own: Readonly<Record<string, string>> = {}) =>
  createGitAccess({ PATH: process.env["PATH"], LONGHAUL_GIT_FOLDER: root, ...own });

it("finds the pointers of a commit, and of all commits since another", async () => {
  const [one, two, three] = ["one", "two", "three"].map(pointerOf);
  const base = remote.commit("main", { "one.bin": one?.text ?? "", "text.txt": "version https://git-lfs\n" });
  remote.commit("main", { "two.bin": two?.text ?? "" });
  const head = remote.commit("main", { "two.bin": three?.text ?? "", "quoted.md": `> ${one?.text}` });
  const mirror = await updateMirror(access(), remote.url);
  const oids = (found: readonly { readonly oid: string }[]) => found.map(({ oid }) => oid).toSorted();
  const expected = (...pointers: (typeof one)[]) => pointers.map((pointer) => pointer?.oid ?? "").toSorted();
  expect(oids(await lfsObjectsOf(access(), mirror, head))).toEqual(expected(one, three));
  expect(oids(await lfsObjectsSince(access(), mirror, head, base))).toEqual(expected(two, three));
  expect(oids(await lfsObjectsSince(access(), mirror, head, undefined))).toEqual(expected(one, two, three));
});

it("fetches no files that would fill the worker's disk, and asks no store for them", async () => {
  const { text } = pointerOf("content");
  const commit = remote.commit("main", { "a.bin": text.replace(/size \d+/, "size 900000000000000") });
  const mirror = await updateMirror(access(), remote.url);
  const url = "https://nowhere.invalid/acme/app";
  await expect(fetchLfs(access(), { named: { url }, url, mirror, commit }, signal)).rejects.toThrow(
    "more than half of what is free on the worker's disk",
  );
});

it("fetches an object once, and refuses an incomplete one", async () => {
  const { text, oid } = pointerOf("content");
  const commit = remote.commit("main", { "a.bin": text });
  const store = createLfsServer("password");
  store.objects.set(oid, Buffer.from("content"));
  const server = await serveGit(remote, "password", store.handle);
  const url = `${server.origin}/acme/app`;
  const git = access({ LONGHAUL_GIT_TOKEN: "me:password" });
  const mirror = await updateMirror(git, `${url}.git`);
  const from = { named: { url }, url, mirror, commit };
  store.lies = true;
  await expect(fetchLfs(git, from, signal)).rejects.toThrow("different content");
  store.lies = false;
  expect(await fetchLfs(git, from, signal)).toEqual([{ oid, size: 7 }]);
  await fetchLfs(git, from, signal);
  expect(store.seen.filter((line) => line.startsWith("GET"))).toHaveLength(2);
  await expect(
    fetchLfs(access(), { ...from, mirror: await updateMirror(git, remote.url) }, signal),
  ).rejects.toThrow(/answered 401 \(the worker's credential/);
});

it("uses the store named by .lfsconfig only if allowed, with that host's token alone", async () => {
  const storeFor = async (lfsUrl: string) => {
    const commit = remote.commit("main", { ".lfsconfig": `[lfs]\n\turl = ${lfsUrl}\n` });
    const git = access({ LONGHAUL_GIT_TOKEN: "all", LONGHAUL_GIT_TOKEN_10_0_0_7: "own" });
    const folder = await updateMirror(access(), remote.url);
    const url = "https://8.8.8.8/acme/app";
    return createLfsStore(
      git,
      { named: { url, also: ["10.0.0.7/store"] }, url, folder, commit },
      "download",
      signal,
    );
  };
  const basic = (token: string) => `Basic ${Buffer.from(`x-access-token:${token}`).toString("base64")}`;
  expect(await storeFor("https://8.8.4.4/store/")).toMatchObject({
    endpoint: "https://8.8.4.4/store",
    headers: {},
  });
  expect((await storeFor("https://10.0.0.7/store")).headers).toEqual({ authorization: basic("own") });
  expect((await storeFor("https://8.8.8.8/store")).headers).toEqual({});
  expect((await storeFor("https://8.8.8.8/acme/app.git/info/lfs")).headers).toEqual({
    authorization: basic("all"),
  });
  for (const wrong of [
    `file://${remote.folder}`,
    "http://8.8.8.8/store",
    "https://127.0.0.1/x",
    "https://10.0.0.7/other",
    "git@8.8.8.8:acme/other",
    "ext::sh -c id",
  ])
    await expect(storeFor(wrong)).rejects.toThrow("is not contacted");
});

it("follows the store to no address inside the worker's network", async () => {
  const asked: string[] = [];
  const inner = createServer((request, response) => {
    asked.push(request.url ?? "");
    response.end("secret");
  });
  const port = await listen(inner);
  const outer = createServer((request, response) => {
    response.writeHead(302, { location: `http://127.0.0.1:${port}${request.url}` }).end();
  });
  const origin = `http://localhost:${await listen(outer, { host: "localhost" })}`;
  const url = `${origin}/acme/app`;
  const folder = await updateMirror(access(), remote.url);
  const from = { named: { url }, url, folder, commit: remote.at("main") ?? "" };
  const store = await createLfsStore(access(), from, "download", signal);
  const init = { method: "GET", signal };
  await expect(send(store, `${origin}/x`, init)).rejects.toThrow("leads to an address that is not contacted");
  expect(asked).toEqual([]);
});

it("asks an ssh server for its store's address", async () => {
  mkdirSync(join(root, "bin"));
  const answer = JSON.stringify({ href: "https://8.8.8.8/lfs/", header: { Authorization: "RemoteAuth x" } });
  writeFileSync(
    join(root, "bin", "ssh"),
    `#!/bin/sh\nprintf '%s\\n' "$@" > "$(dirname "$0")/seen"\nprintf '%s' '${answer}'\n`,
  );
  chmodSync(join(root, "bin", "ssh"), 0o755);
  const git = access({ PATH: `${join(root, "bin")}:${process.env["PATH"]}` });
  const folder = await updateMirror(access(), remote.url);
  const url = "git@host.test:acme/app.git";
  const from = { named: { url }, url, folder, commit: remote.at("main") ?? "" };
  const store = await createLfsStore(git, from, "upload", signal);
  expect(store).toMatchObject({
    endpoint: "https://8.8.8.8/lfs",
    headers: { Authorization: "RemoteAuth x" },
  });
  const seen = execFileSync("tail", ["-2", join(root, "bin", "seen")], { encoding: "utf8" });
  expect(seen).toBe("git@host.test\ngit-lfs-authenticate 'acme/app.git' upload\n");
});
