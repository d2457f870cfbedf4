/** What the worker does to a delivered branch, by real git: nothing of somebody else's is gone over or removed. */
import { beforeEach, expect, it } from "vitest";
import {
  hasBase,
  mergeOfBase,
  pushMerge,
  readHeads,
  removeBranch,
  whoseHead,
} from "../../../activities/git/followed-branch.ts";
import { createGitAccess, type GitAccess } from "../../../activities/git/git-access.ts";
import { emptyFolder } from "../../support/empty-folder.ts";
import { makeRemote, type Remote } from "../../support/remotes.ts";

let remote: Remote;
let access: GitAccess;
let own = "";
beforeEach(() => {
  remote = makeRemote();
  access = createGitAccess({ PATH: process.env["PATH"], LONGHAUL_GIT_FOLDER: emptyFolder() });
  own = remote.commit("work", { one: "1\n" });
});

const { signal } = new AbortController();
const heads = () => readHeads(access, remote.url, { branch: "work", base: "main", signal });
const names = { branch: "work", into: "main" };
const tended = (commit: string) => ({ url: remote.url, branch: "work", commit, signal });

async function merged() {
  const made = await mergeOfBase(access, await heads(), names);
  return "commit" in made ? made.commit : expect.fail(made.refused);
}

it("merges the base as a forge's button does: the same commit each time, and it counts as ours", async () => {
  expect(await hasBase(access, await heads())).toBe(true);
  const base = remote.commit("main", { other: "o\n" });
  expect(await hasBase(access, await heads())).toBe(false);
  const commit = await merged();
  expect(await merged()).toBe(commit);
  expect(await pushMerge(access, await heads(), tended(commit))).toBeUndefined();
  expect(remote.at("refs/heads/work")).toBe(commit);
  expect(remote.at(`${commit}^1`)).toBe(own);
  expect(remote.at(`${commit}^2`)).toBe(base);
  expect(await hasBase(access, await heads())).toBe(true);
  expect(await whoseHead(access, await heads(), [{ commit: own, isDone: true }])).toBe("ours");
});

it("counts as ours however often the base was merged since, and not with a commit in between", async () => {
  const whose = async () => whoseHead(access, await heads(), [{ commit: own, isDone: true }]);
  for (const text of ["a\n", "b\n"]) {
    remote.commit("main", { other: text });
    await pushMerge(access, await heads(), tended(await merged()));
  }
  expect(await whose()).toBe("ours");
  remote.commit("work", { two: "2\n" });
  remote.commit("main", { other: "c\n" });
  await pushMerge(access, await heads(), tended(await merged()));
  expect(await whose()).toBe("on-top");
});

it("merges nothing that conflicts", async () => {
  remote.commit("main", { one: "theirs\n" });
  expect(await mergeOfBase(access, await heads(), names)).toMatchObject({
    refused: "main conflicts with it",
  });
});

it("pushes no merge over what somebody has pushed meanwhile", async () => {
  remote.commit("main", { other: "o\n" });
  const commit = await merged();
  const before = await heads();
  const theirs = remote.commit("work", { two: "2\n" });
  expect(await pushMerge(access, before, tended(commit))).toMatchObject({
    refused: expect.stringContaining("commits that this session did not make"),
  });
  expect(remote.at("refs/heads/work")).toBe(theirs);
});

it("removes the branch only at the commit that was merged", async () => {
  const before = await heads();
  const theirs = remote.commit("work", { two: "2\n" });
  expect(await removeBranch(access, before, tended(own))).toMatchObject({ refused: expect.any(String) });
  expect(remote.at("refs/heads/work")).toBe(theirs);
  expect(await removeBranch(access, before, tended(theirs))).toBeUndefined();
  expect(remote.at("refs/heads/work")).toBeUndefined();
});
