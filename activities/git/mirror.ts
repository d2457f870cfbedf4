/** A cached clone of each address: sessions start from it, and their relays borrow its objects. */
import { utimes } from "node:fs/promises";
import { join } from "node:path";
import { exists, folderOf, makeWhole } from "./folders.ts";
import { inTurn } from "../sandbox/shared-work.ts";
import type { GitAccess } from "./git-access.ts";
import { git, runGit } from "./run-git.ts";

const REFS = ["+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"];

/**
 * The mirror's folder, with the remote's current branches and tags.
 * @param wants a commit that it must have; if it has it, nothing is fetched
 * @throws GitFailed
 */
export async function updateMirror(
  access: GitAccess,
  url: string,
  options: { readonly wants?: string; readonly signal?: AbortSignal | undefined } = {},
): Promise<string> {
  // What a credential opened is not for those who may not use it.
  const name = access.opens(url) ? url : `${url} without a credential`;
  const folder = join(access.folder, "mirrors", `${folderOf(name)}.git`);
  const { signal, wants } = options;
  return inTurn(folder, async () => {
    if (!(await exists(folder))) {
      await makeWhole(folder, async (path) => {
        await git(access, ["init", "--quiet", "--bare", path], { signal });
        // A session may want the history of one commit to a certain depth only.
        await git(access, ["config", "uploadpack.allowAnySHA1InWant", "true"], { cwd: path, signal });
        await fetchAll(access, path, url, signal);
      });
    } else if (wants === undefined || !(await hasCommit(access, folder, wants))) {
      await fetchAll(access, folder, url, signal);
    }
    // Marks it as used: see unused.ts.
    const now = new Date();
    await utimes(folder, now, now);
    return folder;
  });
}

export async function hasCommit(access: GitAccess, folder: string, commit: string): Promise<boolean> {
  return (await runGit(access, ["cat-file", "-e", `${commit}^{commit}`], { cwd: folder })).code === 0;
}

// Not checked for its form, unlike what comes out of a sandbox: the remote's history cannot be changed any more.
async function fetchAll(
  access: GitAccess,
  folder: string,
  url: string,
  signal: AbortSignal | undefined,
): Promise<void> {
  const command = ["fetch", "--quiet", "--prune", "--no-write-fetch-head", "--", url, ...REFS];
  await git(access, ["-c", "fetch.fsckObjects=false", ...command], { cwd: folder, url, signal });
}
