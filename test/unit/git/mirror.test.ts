import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:http";
import { dirname, join } from "node:path";
import { beforeEach, expect, it, onTestFinished } from "vitest";
import { boundedFetch, type GitFailed } from "../../../activities/git/run-git.ts";
import { createGitAccess, type GitAccess } from "../../../activities/git/git-access.ts";
import { hasCommit, removeDamaged, updateMirror } from "../../../activities/git/mirror.ts";
import { peekFile } from "../../../activities/git/repository-files.ts";
import { remoteTrouble } from "../../../activities/git/remote.ts";
import { toRefusal } from "../../../activities/git/trouble.ts";
import { removeUnusedRepositories } from "../../../activities/git/own-repositories.ts";
import { findStartPoint, withPack } from "../../../activities/git/start-point.ts";
import { gitIn, makeRemote, type Remote } from "../../support/remotes.ts";
import { listen } from "../../support/listen.ts";
import { emptyFolder } from "../../support/empty-folder.ts";

let remote: Remote;
let root: string;
let access: GitAccess;
beforeEach(() => {
  remote = makeRemote();
  root = emptyFolder();
  access = createGitAccess({ PATH: process.env["PATH"], LONGHAUL_GIT_FOLDER: root });
});

const { signal } = new AbortController();

it("is cloned once for two users at once, then only fetched; a crash's leftovers are removed", async () => {
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
  const hostile = createGitAccess({
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

/** Long before this process, as what a crash left. */
const LONG_AGO = new Date(Date.now() - 86_400_000);
const leave = (folder: string, name: string) => {
  mkdirSync(dirname(join(folder, name)), { recursive: true });
  writeFileSync(join(folder, name), "");
  utimesSync(join(folder, name), LONG_AGO, LONG_AGO);
};
const packIn = (mirror: string) => {
  gitIn(mirror, "repack", "-adq");
  const folder = join(mirror, "objects", "pack");
  const pack = join(folder, readdirSync(folder).find((name) => name.endsWith(".pack")) ?? "");
  chmodSync(pack, 0o600);
  return pack;
};

const locks = [
  "refs/heads/main.lock",
  "packed-refs.lock",
  "shallow.lock",
  "config.lock",
  "HEAD.lock",
  "refs/tags/v1.lock",
  "objects/info/commit-graphs/commit-graph-chain.lock",
  "objects/pack/multi-pack-index.lock",
];
it.each([
  ...locks.map(
    (name) => [`the lock ${name} that a killed git left`, (mirror: string) => leave(mirror, name)] as const,
  ),
  [
    "a lock that a git left which this process started",
    (mirror: string) => writeFileSync(join(mirror, "refs/heads/main.lock"), ""),
  ] as const,
  ["a truncated pack", (mirror: string) => truncateSync(packIn(mirror), 100)] as const,
  ["an empty pack", (mirror: string) => truncateSync(packIn(mirror), 0)] as const,
  ["no HEAD", (mirror: string) => rmSync(join(mirror, "HEAD"))] as const,
  ["a broken config", (mirror: string) => writeFileSync(join(mirror, "config"), "[broken")] as const,
  ["no objects", (mirror: string) => rmSync(join(mirror, "objects"), { recursive: true })] as const,
  ["no references", (mirror: string) => rmSync(join(mirror, "refs"), { recursive: true })] as const,
  ["a broken reference", (mirror: string) => writeFileSync(join(mirror, "refs/heads/main"), "zz\n")] as const,
  ["an empty reference", (mirror: string) => writeFileSync(join(mirror, "refs/heads/main"), "")] as const,
  [
    "an object of another one",
    (mirror: string) => writeFileSync(join(mirror, "packed-refs"), `${"1".repeat(40)} refs/heads/gone\n`),
  ] as const,
])("serves the next session although it has %s", async (_what, breakIt) => {
  const mirror = await updateMirror(access, remote.url);
  gitIn(remote.folder, "tag", "v1", "main");
  breakIt(mirror);
  const newer = remote.commit("main", { more: "more\n" });
  expect(await updateMirror(access, remote.url)).toBe(mirror);
  expect(gitIn(mirror, "rev-parse", "refs/heads/main", "refs/tags/v1").split("\n")[0]).toBe(newer);
  gitIn(mirror, "fsck", "--full");
  for (const lock of locks) expect(existsSync(join(mirror, lock))).toBe(false);
});

it("is not touched while another process works in it, nor because the remote does not answer", async () => {
  const mirror = await updateMirror(access, remote.url);
  leave(mirror, "refs/heads/main.lock");
  const other = spawn("sh", ["-c", 'cd "$1"; sh -c "echo in; cat"; true', "sh", mirror], {
    stdio: ["pipe", "pipe", "ignore"],
  });
  onTestFinished(() => void other.stdin.end());
  await once(other.stdout, "data");
  remote.commit("main", { more: "more\n" });
  const failed = updateMirror(access, remote.url);
  await expect(failed).rejects.toThrow("cannot lock ref");
  const { result } = (await failed.catch((error: unknown) => error)) as GitFailed;
  const trouble = remoteTrouble(remote.url, result);
  expect(trouble).toMatchObject({ kind: "ours", message: expect.stringMatching(/^Our copy of /) as string });
  expect(toRefusal(trouble).isPassing).toBe(true);
  expect(existsSync(join(mirror, "refs/heads/main.lock"))).toBe(true);
  writeFileSync(join(mirror, "config"), "[broken");
  renameSync(remote.folder, `${remote.folder}.moved`);
  await expect(updateMirror(access, remote.url)).rejects.toThrow();
  expect(existsSync(mirror)).toBe(true);
});

it("is cloned again after a failure if its content turns out to be damaged", async () => {
  remote.commit("main", { large: "0123456789".repeat(9_000) + Math.random() });
  const mirror = await updateMirror(access, remote.url);
  expect(await removeDamaged(access, [mirror])).toBe(false);
  const pack = packIn(mirror);
  const bytes = readFileSync(pack);
  bytes.fill(0x55, bytes.length - 60, bytes.length - 30);
  writeFileSync(pack, bytes);
  expect(await removeDamaged(access, [mirror])).toBe(true);
  gitIn(await updateMirror(access, remote.url), "fsck", "--full");
});

it("has the remote's object format, also of a remote that was made again in another one", async () => {
  await updateMirror(access, remote.url);
  rmSync(remote.folder, { recursive: true });
  mkdirSync(remote.folder);
  gitIn(remote.folder, "init", "-q", "--bare", "-b", "main", "--object-format=sha256");
  const clone = join(root, "clone");
  gitIn(root, "init", "-q", "--object-format=sha256", clone);
  gitIn(clone, "commit", "-q", "--allow-empty", "-m", "One");
  gitIn(clone, "push", "-q", remote.folder, "HEAD:main");
  const commit = remote.at("main") ?? "";
  expect(commit).toHaveLength(64);
  const mirror = await updateMirror(access, remote.url);
  const start = await findStartPoint(access, mirror, { ref: undefined, defaultBranch: "main" });
  expect(start?.commit).toBe(commit);
  if (start !== undefined)
    await withPack(access, mirror, { start, depth: 1, signal }, async ({ bytes }) => {
      for await (const piece of bytes) expect(piece.length).toBeGreaterThan(0);
    });
});

it("a disk that takes no files is named as the worker's", async () => {
  const file = join(root, "a-file");
  writeFileSync(file, "");
  const wrong = createGitAccess({ PATH: process.env["PATH"], LONGHAUL_GIT_FOLDER: join(file, "git") });
  const failed = (await updateMirror(wrong, remote.url).catch((error: unknown) => error)) as GitFailed;
  expect(remoteTrouble(remote.url, failed.result).message).toMatch(/^Our copy of .* ENOTDIR/);
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

/** The worker's access with a remote that sends without end: a git whose fetch only writes a pack on and on. */
function endlessRemote(): GitAccess {
  const programs = emptyFolder();
  const script = `#!/bin/sh
case " $* " in *" fetch "*) while :; do head -c 300000 /dev/zero >> objects/pack/tmp_pack_x; sleep 0.02; done;; esac
PATH=$(echo "$PATH" | cut -d: -f2-) exec git "$@"
`;
  writeFileSync(join(programs, "git"), script);
  chmodSync(join(programs, "git"), 0o755);
  return createGitAccess({ PATH: `${programs}:${process.env["PATH"]}`, LONGHAUL_GIT_FOLDER: root });
}

it("a look at one file of a remote that sends without end is stopped, and told", async () => {
  const paths = ["a.txt"];
  const peeked = await peekFile(endlessRemote(), remote.url, { ref: undefined, paths, maxBytes: 2 ** 20 });
  if (peeked === undefined || !("trouble" in peeked)) throw new Error("It was read.");
  expect(peeked.trouble.message).toMatch(/has more than 1 MiB.*nothing of it is kept/s);
});

it("a remote that sends without end is stopped, told at once, and nothing of it is kept", async () => {
  const sent = updateMirror(endlessRemote(), remote.url, { maxBytes: 2 ** 20 });
  const { trouble } = ((await sent.catch((error: unknown) => error)) as GitFailed).result;
  expect(trouble && toRefusal(trouble)).toMatchObject({
    isPassing: false,
    refused: expect.stringMatching(
      /has more than 1 MiB.*nothing of it is kept.*choose another --repo/s,
    ) as string,
  });
  expect(readdirSync(join(root, "mirrors"))).toEqual([]);
});

it("a fetch into a clone is bounded by what it adds, and leaves the clone as it was", async () => {
  const folder = await updateMirror(access, remote.url);
  const newer = remote.commit("main", { more: "more\n" });
  const sent = updateMirror(endlessRemote(), remote.url, { maxBytes: 2 ** 20 });
  await expect(sent).rejects.toThrow(/has more than/);
  expect(await hasCommit(access, folder, remote.at("main~1") ?? "")).toBe(true);
  expect(readdirSync(join(folder, "objects", "pack")).filter((name) => name.startsWith("tmp_"))).toEqual([]);
  await updateMirror(access, remote.url);
  expect(await hasCommit(access, folder, newer)).toBe(true);
});

it("a remote that takes longer than the limit is told as that, and not tried again", async () => {
  const server = createServer(() => undefined);
  const port = await listen(server, { end: () => server.closeAllConnections() });
  const url = `http://127.0.0.1:${port}/a/b.git`;
  const folder = emptyFolder();
  gitIn(folder, "init", "--quiet", "--bare");
  const call = { cwd: folder, url, timeoutMs: 300 };
  const failed = await boundedFetch(access, ["fetch", "--", url], call).catch((error: unknown) => error);
  const { trouble } = (failed as GitFailed).result;
  expect(trouble?.message).toContain("takes longer than 0.3 s");
  expect(trouble && toRefusal(trouble).isPassing).toBe(false);
});
