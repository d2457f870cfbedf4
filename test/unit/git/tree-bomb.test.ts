/** Repositories whose files no checkout could write. */
import { execFileSync } from "node:child_process";
import { expect, it } from "vitest";
import { gitConfigSchema } from "../../../activities/config/git-settings.ts";
import { createGitAccess } from "../../../activities/git/git-access.ts";
import { fetchForSession } from "../../../activities/git/lay-out.ts";
import { tooLargeTree } from "../../../activities/git/start-point.ts";
import { sessionGit } from "../../../client/sessions/run-flags.ts";
import { emptyFolder } from "../../support/empty-folder.ts";
import { gitIn, makeRemote } from "../../support/remotes.ts";

const { signal } = new AbortController();

/** A commit whose tree contains `width` times the same tree, `depth` times over. */
function bombIn(folder: string, width: number, depth: number, name = "n"): string {
  const put = (input: string, ...args: string[]) =>
    execFileSync("git", args, { cwd: folder, input, encoding: "utf8" }).trim();
  let entry = `100644 blob ${put("x", "hash-object", "-w", "--stdin")}`;
  for (let at = 0; at < depth; at += 1) {
    const names = Array.from({ length: width }, (_none, index) => `${entry}\t${name}${index}\n`);
    entry = `040000 tree ${put(names.join(""), "mktree")}`;
  }
  const identity = ["-c", "user.name=A", "-c", "user.email=a@b.c"];
  return put("bomb", ...identity, "commit-tree", entry.split(" ")[2] ?? "");
}

it.each([
  ["a tree of ten to the tenth files", 10, "n", /more than 1000000 files/],
  ["folders nested deeper than a path can be long", 1, "n".repeat(500), /nested too deep/],
])("%s is refused once and for all, and quickly", async (_case, width, name, why) => {
  const remote = makeRemote();
  gitIn(remote.folder, "update-ref", "refs/heads/bomb", bombIn(remote.folder, width, 10, name));
  const repository = sessionGit({ repo: remote.url, ref: "bomb" }, gitConfigSchema.parse({}));
  const access = createGitAccess({ PATH: process.env["PATH"], LONGHAUL_GIT_FOLDER: emptyFolder() });
  await expect(
    fetchForSession(access, repository ?? expect.fail("no repository"), "id", signal),
  ).rejects.toMatchObject({
    type: "RepositoryUnavailable",
    nonRetryable: true,
    message: expect.stringMatching(why) as string,
  });
});

it("files and folders count up to the limit, and no further", async () => {
  const remote = makeRemote();
  const access = createGitAccess({ PATH: process.env["PATH"], LONGHAUL_GIT_FOLDER: emptyFolder() });
  const commit = bombIn(remote.folder, 3, 2);
  const ask = (maxEntries: number) => tooLargeTree(access, remote.folder, commit, { signal, maxEntries });
  expect(await ask(12)).toBeUndefined();
  expect(await ask(11)).toContain("more than 11");
});
