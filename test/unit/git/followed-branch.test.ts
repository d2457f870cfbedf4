/** Whose the newest commit of a followed branch is, by real git: what counts as the session's, and what is never gone over. */
import { beforeEach, expect, it } from "vitest";
import { conflictsBetween, readHeads, whoseHead } from "../../../activities/git/followed-branch.ts";
import { createGitAccess, type GitAccess } from "../../../activities/git/git-access.ts";
import { emptyFolder } from "../../support/empty-folder.ts";
import { gitIn, makeRemote, type Remote } from "../../support/remotes.ts";

let remote: Remote;
let access: GitAccess;
/** The session's commits on `work`: the second one was pushed last. */
let [first, second] = ["", ""];
beforeEach(() => {
  remote = makeRemote();
  access = createGitAccess({ PATH: process.env["PATH"], LONGHAUL_GIT_FOLDER: emptyFolder() });
  first = remote.commit("work", { one: "1\n" });
  second = remote.commit("work", { one: "2\n" });
});

const { signal } = new AbortController();
const heads = () => readHeads(access, remote.url, { branch: "work", base: "main", signal });
const done = (commit: string) => ({ commit, isDone: true });
const whose = async (own = [done(second), done(first)]) => whoseHead(access, await heads(), own);

/** A person does it in a clone of their own, with what they have there. */
function person(...steps: readonly (readonly string[])[]): void {
  const clone = emptyFolder();
  gitIn(clone, "clone", "-q", "-b", "work", remote.folder, ".");
  for (const step of steps) gitIn(clone, ...step);
}

it("is ours as long as it is a commit that the session has pushed", async () => {
  expect(await whose()).toBe("ours");
});

it("is ours while the push of it is not recorded as done", async () => {
  const third = remote.commit("work", { one: "3\n" });
  expect(await whose([{ commit: third, isDone: false }, done(second)])).toBe("ours");
  expect(await whose()).toBe("on-top");
});

it("is ours if the base was merged into it without a conflict, as by the forge's button", async () => {
  remote.commit("main", { other: "o\n" });
  person(["merge", "-q", "--no-ff", "-m", "Update branch", "origin/main"], ["push", "-q", "origin", "work"]);
  expect(await whose()).toBe("ours");
});

it("is not ours if somebody has changed more in that merge", async () => {
  remote.commit("main", { other: "o\n" });
  person(
    ["merge", "-q", "--no-ff", "--no-commit", "origin/main"],
    ["rm", "-q", "-f", "one"],
    ["commit", "-q", "-m", "Update branch"],
    ["push", "-q", "origin", "work"],
  );
  expect(await whose()).toBe("on-top");
});

it("is a person's if they have pushed on top of it", async () => {
  remote.commit("work", { theirs: "t\n" });
  expect(await whose()).toBe("on-top");
});

it.each([
  ["amended", [["commit", "-q", "--amend", "-m", "Reworded"]]],
  [
    "squashed",
    [
      ["reset", "-q", "--soft", "origin/main"],
      ["commit", "-q", "-m", "All"],
    ],
  ],
  ["replaced", [["reset", "-q", "--hard", "origin/main"]]],
])("is rewritten if it was %s", async (_how, steps) => {
  person(...steps, ["push", "-q", "--force", "origin", "HEAD:work"]);
  expect(await whose()).toBe("rewritten");
});

it("is ours again once somebody has pushed our commit back", async () => {
  person(["commit", "-q", "--amend", "-m", "Reworded"], ["push", "-q", "--force", "origin", "HEAD:work"]);
  expect(await whose()).toBe("rewritten");
  gitIn(remote.folder, "update-ref", "refs/heads/work", second);
  expect(await whose()).toBe("ours");
  gitIn(remote.folder, "update-ref", "refs/heads/work", first);
  expect(await whose()).toBe("ours");
});

it("is gone with its branch", async () => {
  gitIn(remote.folder, "update-ref", "-d", "refs/heads/work");
  expect(await whose()).toBe("gone");
  expect(await conflictsBetween(access, await heads())).toBeUndefined();
});

it("conflicts in the files that git says, whatever their names", async () => {
  remote.commit("work", { "a b\tc": "ours\n" });
  expect(await conflictsBetween(access, await heads())).toEqual([]);
  remote.commit("main", { one: "theirs\n", "a b\tc": "theirs\n", other: "o\n" });
  expect((await conflictsBetween(access, await heads()))?.toSorted()).toEqual(["a b\tc", "one"]);
});
