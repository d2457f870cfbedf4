/** A commit whose files are those of another one, but for some paths, which are as in a third: made by the worker's git alone. */
import { randomUUID } from "node:crypto";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { Relay } from "./relay.ts";
import { git } from "./run-git.ts";

/** Patterns from the top of a repository, as git's own options. */
export const pathspecs = (patterns: readonly string[]): readonly string[] =>
  patterns.map((pattern) => `:(top,glob)${pattern}`);

/** Of commits that the worker makes by itself. */
export const OWN_IDENTITY = {
  GIT_AUTHOR_NAME: "Longhaul",
  GIT_AUTHOR_EMAIL: "noreply@localhost",
  GIT_COMMITTER_NAME: "Longhaul",
  GIT_COMMITTER_EMAIL: "noreply@localhost",
};

/**
 * Each path that matches is as in `base`: what was changed or removed since is back, what was added is gone.
 * @returns the commit itself if it changes no such path; the same one each time
 * @throws GitFailed, also if the relay lacks `base`
 */
export async function restoredCommit(
  { access, folder }: Relay,
  {
    commit,
    base,
    patterns,
  }: { readonly commit: string; readonly base: string; readonly patterns: readonly string[] },
): Promise<string> {
  // Not `-z`: quoted, names are whole whatever bytes they have.
  const quoted = ["-c", "core.quotePath=true", "diff", "--raw", "--no-renames", "--no-ext-diff"];
  const args = [...quoted, "--abbrev=64", commit, base, "--", ...pathspecs(patterns)];
  const entries = toIndexEntries(await git(access, args, { cwd: folder }));
  if (entries === "") return commit;
  const index = join(folder, `restored-${randomUUID()}.index`);
  const date = await git(access, ["show", "-s", "--format=%cd", "--date=raw", commit], { cwd: folder });
  const identity = { ...OWN_IDENTITY, GIT_AUTHOR_DATE: date, GIT_COMMITTER_DATE: date };
  const own = { ...access, environment: { ...access.environment, ...identity, GIT_INDEX_FILE: index } };
  try {
    await git(own, ["read-tree", commit], { cwd: folder });
    await git(own, ["update-index", "--index-info"], { cwd: folder, input: entries });
    const tree = await git(own, ["write-tree"], { cwd: folder });
    const message = "The work, with its checks as the session found them";
    const made = await git(own, ["commit-tree", tree, "-p", commit, "-m", message], { cwd: folder });
    await git(access, ["update-ref", `refs/longhaul/commits/${made}`, made], { cwd: folder });
    return made;
  } finally {
    await rm(index, { force: true });
  }
}

/** Of lines of `git diff --raw` from the commit to its base. What is removed comes first: a file may be in the way of a folder. */
function toIndexEntries(raw: string): string {
  const removed: string[] = [];
  const placed: string[] = [];
  for (const line of raw.split("\n")) {
    const [facts = "", path] = line.split("\t");
    if (path === undefined) continue;
    const [, mode = "", , object = ""] = facts.split(" ");
    (mode === GONE ? removed : placed).push(`${mode} ${object}\t${path}\n`);
  }
  return [...removed, ...placed].join("");
}

/** The mode of what is not there. */
const GONE = "000000";
