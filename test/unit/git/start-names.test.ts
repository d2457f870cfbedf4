/** What `--ref` may be, and what HEAD may be: the check before a start and the work read both alike. */
import { beforeEach, describe, expect, it } from "vitest";
import { gitConfigSchema } from "../../../activities/config/git-settings.ts";
import { createGitAccess } from "../../../activities/git/git-access.ts";
import { fetchForSession } from "../../../activities/git/lay-out.ts";
import { sessionGit } from "../../../client/sessions/run-flags.ts";
import { checkRepository } from "../../../client/setup/repository-check.ts";
import { emptyFolder } from "../../support/empty-folder.ts";
import { gitIn, makeRemote, type Remote } from "../../support/remotes.ts";

const { signal } = new AbortController();
let remote: Remote;
let folder: string;
let base: string;
let side: string;
let pull: string;
beforeEach(() => {
  folder = emptyFolder();
  remote = makeRemote();
  base = remote.at("main") ?? "";
  side = remote.commit("side", { side: "side\n" });
  pull = remote.commit("contribution", { pull: "pull\n" });
  gitIn(remote.folder, "update-ref", "refs/pull/7/head", pull);
  gitIn(remote.folder, "update-ref", "refs/merge-requests/3/head", pull);
  gitIn(remote.folder, "update-ref", "-d", "refs/heads/contribution");
  gitIn(remote.folder, "tag", "-m", "One", "v1", base);
});

const environment = () => ({ PATH: process.env["PATH"], LONGHAUL_GIT_FOLDER: folder });
const settings = (ref?: string, more: object = {}) => {
  const found = sessionGit({ repo: remote.url, ref }, gitConfigSchema.parse(more));
  return found ?? expect.fail("no repository");
};
const check = (ref?: string, more: object = {}) => checkRepository(settings(ref, more), {}, environment());
const work = async (ref?: string) =>
  (await fetchForSession(createGitAccess(environment()), settings(ref), "id", signal)).start;

it.each([
  ["main", () => base, "main"],
  ["refs/heads/main", () => base, "main"],
  ["heads/main", () => base, "main"],
  ["refs/heads/side", () => side, "side"],
  ["v1", () => base, "v1"],
  ["refs/tags/v1", () => base, "refs/tags/v1"],
  ["tags/v1", () => base, "tags/v1"],
  ["refs/pull/7/head", () => pull, "refs/pull/7/head"],
  ["pull/7/head", () => pull, "pull/7/head"],
  ["refs/merge-requests/3/head", () => pull, "refs/merge-requests/3/head"],
  ["HEAD", () => base, "main"],
])("--ref %s starts there, for the check and for the work", async (ref, commit, name) => {
  await expect(check(ref)).resolves.toBeUndefined();
  expect(await work(ref)).toMatchObject({ commit: commit(), name });
});

it("--ref of a whole commit starts there, also of one that only a pull request has", async () => {
  for (const commit of [side, pull]) {
    await expect(check(commit)).resolves.toBeUndefined();
    expect((await work(commit)).commit).toBe(commit);
  }
  expect((await work(side.slice(0, 10))).commit).toBe(side);
});

it.each(["gone", "refs/heads/gone", "refs/pull/8/head", "pull/7", "0".repeat(40)])(
  "--ref %s, which is not there, is refused by the check, and by the work in the same words",
  async (ref) => {
    await expect(check(ref)).rejects.toMatchObject({
      exitCode: 2,
      message: expect.stringContaining(ref) as string,
      fix: expect.stringMatching(/--ref: main, side/) as string,
    });
    await expect(work(ref)).rejects.toThrow(`has no branch or tag ${ref}`);
  },
);

describe("HEAD", () => {
  it("of a branch that is not there is refused, with the branches that are", async () => {
    gitIn(remote.folder, "symbolic-ref", "HEAD", "refs/heads/gone");
    await expect(check()).rejects.toMatchObject({
      exitCode: 2,
      message: expect.stringContaining("names gone, which is not there") as string,
      fix: "Choose --ref: main, side",
    });
    await expect(work()).rejects.toThrow(/names gone, which is not there\. Choose --ref: main, side/);
    await expect(check("main")).resolves.toBeUndefined();
    expect((await work("main")).commit).toBe(base);
  });

  it("on no branch starts at its commit, also if no branch has that", async () => {
    for (const commit of [base, pull]) {
      gitIn(remote.folder, "update-ref", "--no-deref", "HEAD", commit);
      await expect(check()).resolves.toBeUndefined();
      expect(await work()).toMatchObject({ commit, name: "HEAD", defaultBranch: undefined });
    }
  });

  it("of an empty repository is said to be that", async () => {
    for (const ref of ["heads/main", "heads/side", "tags/v1", "pull/7/head", "merge-requests/3/head"])
      gitIn(remote.folder, "update-ref", "-d", `refs/${ref}`);
    await expect(check()).rejects.toMatchObject({
      exitCode: 2,
      message: expect.stringContaining("is empty") as string,
    });
    await expect(work()).rejects.toThrow("is empty");
  });
});
