import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, expect, it } from "vitest";
import { gitAccessOf, type GitAccess } from "../../../activities/git/git-access.ts";
import { hasCommit, updateMirror } from "../../../activities/git/mirror.ts";
import { removeUnusedRepositories } from "../../../activities/git/unused.ts";
import { findStartPoint, withPack } from "../../../activities/git/start-point.ts";
import { gitIn, makeRemote, type Remote } from "../../support/remotes.ts";
import { emptyFolder } from "../../support/empty-folder.ts";

let remote: Remote;
let root: string;
let access: GitAccess;
beforeEach(() => {
  remote = makeRemote();
  root = emptyFolder();
  access = gitAccessOf({ PATH: process.env["PATH"], LONGHAUL_GIT_FOLDER: root });
});

const { signal } = new AbortController();

it("is cloned once for two concurrent users, then only fetched, and a crash's leftovers are removed", async () => {
  const [one, two] = await Promise.all([updateMirror(access, remote.url), updateMirror(access, remote.url)]);
  expect(two).toBe(one);
  const left = `${one}.${process.pid}.abcdef01.part`;
  mkdirSync(left);
  rmSync(one, { recursive: true });
  await updateMirror(access, remote.url);
  expect(existsSync(left)).toBe(false);
  expect(readdirSync(join(root, "mirrors"))).toHaveLength(1);
  const newer = remote.commit("main", { more: "more\n" });
  await updateMirror(access, remote.url, { wants: remote.at("main~1") ?? "" });
  expect(await hasCommit(access, one, newer)).toBe(false);
  await updateMirror(access, remote.url);
  expect(await hasCommit(access, one, newer)).toBe(true);
});

it("ignores the person's own configuration and environment", async () => {
  writeFileSync(join(root, "gitconfig"), '[url "file:///nowhere/"]\n\tinsteadOf = file:///\n');
  const hostile = gitAccessOf({
    PATH: process.env["PATH"],
    HOME: root,
    GIT_CONFIG_GLOBAL: join(root, "gitconfig"),
    LONGHAUL_GIT_FOLDER: root,
  });
  await expect(updateMirror(hostile, remote.url)).resolves.toContain("mirrors");
});

it("starts at a branch, a tag or a commit, and reports a missing one", async () => {
  const base = remote.at("main") ?? "";
  const side = remote.commit("side", { side: "side\n" });
  gitIn(remote.folder, "tag", "v1", base);
  const mirror = await updateMirror(access, remote.url);
  const start = (ref: string | undefined) => findStartPoint(access, mirror, { ref, defaultBranch: "main" });
  expect(await start(undefined)).toMatchObject({ commit: base });
  expect((await start("side"))?.refs).toEqual([
    ["refs/remotes/origin/side", side],
    ["refs/remotes/origin/main", base],
    ["refs/tags/v1", base],
  ]);
  expect((await start("v1"))?.commit).toBe(base);
  expect((await start(side.slice(0, 10)))?.commit).toBe(side);
  expect(await start("gone")).toBeUndefined();
});

it.each([
  [0, "3"],
  [1, "1"],
])("packs the history to a depth of %i for a checkout", async (depth, commits) => {
  remote.commit("main", { a: "a\n" });
  remote.commit("main", { b: "b\n" });
  const mirror = await updateMirror(access, remote.url);
  const start = await findStartPoint(access, mirror, { ref: undefined, defaultBranch: "main" });
  if (start === undefined) return expect.fail("no start");
  const sandbox = join(root, "sandbox");
  mkdirSync(sandbox);
  gitIn(sandbox, "init", "-q");
  await withPack(access, mirror, { start, depth, signal }, async ({ bytes, refs, shallow }) => {
    const pieces: Uint8Array[] = [];
    for await (const piece of bytes) pieces.push(piece);
    execFileSync("git", ["index-pack", "--stdin"], { cwd: sandbox, input: Buffer.concat(pieces) });
    if (shallow !== "") writeFileSync(join(sandbox, ".git", "shallow"), shallow);
    for (const [name, object] of refs) gitIn(sandbox, "update-ref", name, object);
  });
  gitIn(sandbox, "checkout", "-q", "-b", "work", start.commit);
  expect(gitIn(sandbox, "rev-list", "--count", "HEAD")).toBe(commits);
  expect(readdirSync(sandbox).toSorted()).toEqual([".git", "README.md", "a", "b"]);
  gitIn(sandbox, "fsck", "--strict");
});

it("is deleted when no session has used it for a month, and cloned again by the next one", async () => {
  const mirror = await updateMirror(access, remote.url);
  const longAgo = new Date(Date.now() - 31 * 86_400_000);
  utimesSync(mirror, longAgo, longAgo);
  // This use needs nothing new from the remote.
  await updateMirror(access, remote.url, { wants: remote.at("main") ?? "" });
  expect(await removeUnusedRepositories(access)).toEqual([]);
  utimesSync(mirror, longAgo, longAgo);
  expect(await removeUnusedRepositories(access)).toEqual([
    expect.stringContaining("removed the clone") as string,
  ]);
  expect(existsSync(mirror)).toBe(false);
  expect(await updateMirror(access, remote.url)).toBe(mirror);
});
