/** A cached clone of each address: sessions start from it, and their relays borrow its objects. */
import { rm, utimes } from "node:fs/promises";
import { join } from "node:path";
import { inTurn } from "../sandbox/shared-work.ts";
import type { GitAccess } from "./git-access.ts";
import { exists, toFolderName, makeWhole, atWork, isInUse } from "./own-repositories.ts";
import { lsRemote, remoteTrouble } from "./remote.ts";
import { boundedFetch, type FetchCall, git, GitFailed, runGit } from "./run-git.ts";

const REFS = ["+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"];

/** The words of a git that goes on although it could not read what it has. */
const DAMAGE =
  /does not match index|far too short|corrupt|inflate|is empty$|bad object|unable to (read|unpack)|broken link|missing (blob|tree|commit)|hash mismatch|not a git repository|bad config|invalid sha1/im;

interface MirrorCall extends Pick<FetchCall, "signal" | "maxBytes" | "timeoutMs"> {
  /** A commit that it must have: if it has it, nothing is fetched. */
  readonly wants?: string;
}

/**
 * The mirror's folder, with the remote's current branches and tags. It is a cache: locks of the dead are removed, and one that cannot
 * be used although the remote answers is cloned again, once.
 * @throws GitFailed
 */
export async function updateMirror(
  access: GitAccess,
  url: string,
  options: MirrorCall = {},
): Promise<string> {
  // What a credential opened is not for those who may not use it.
  const name = access.opens(url) ? url : `${url} without a credential`;
  const folder = join(access.folder, "mirrors", `${toFolderName(name)}.git`);
  const { wants, ...call } = options;
  return inTurn(folder, async () => {
    try {
      if (!(await exists(folder))) await cloneWhole(access, folder, { url, ...call });
      else if (wants === undefined || !(await hasCommit(access, folder, wants)))
        await atWork(folder, () => refresh(access, folder, { url, ...call }));
      // Marks it as used: see own-repositories.ts.
      const now = new Date();
      await utimes(folder, now, now);
      return folder;
    } catch (error) {
      throw localFailure(error);
    }
  });
}

async function refresh(access: GitAccess, folder: string, call: Omit<FetchCall, "cwd">) {
  const { url, signal } = call;
  const fetched = await boundedFetch(access, fetchCommand(url), { ...call, cwd: folder });
  if (fetched.code === 0 && !DAMAGE.test(fetched.err)) return;
  const { kind } = remoteTrouble(url, fetched);
  if (fetched.code !== 0 && kind !== "ours" && kind !== "disk" && kind !== "refused")
    throw new GitFailed(fetchCommand(url), fetched);
  // A reason that is not the remote's is ours; another worker may be at work in it.
  await formatAt(access, url, signal);
  if (await isInUse(folder)) throw new GitFailed(fetchCommand(url), fetched);
  await rm(folder, { recursive: true, force: true });
  await cloneWhole(access, folder, call);
}

async function cloneWhole(access: GitAccess, folder: string, call: Omit<FetchCall, "cwd">) {
  const { url, signal } = call;
  const format = await formatAt(access, url, signal);
  await makeWhole(folder, async (path) => {
    await git(access, ["init", "--quiet", "--bare", ...format, path], { signal });
    // A session may want the history of one commit to a certain depth only.
    await git(access, ["config", "uploadpack.allowAnySHA1InWant", "true"], { cwd: path, signal });
    const fetched = await boundedFetch(access, fetchCommand(url), { ...call, cwd: path });
    if (fetched.code !== 0) throw new GitFailed(fetchCommand(url), fetched);
  });
}

/** The remote's object format, as an option of `git init`. @throws GitFailed if the remote cannot be asked */
async function formatAt(access: GitAccess, url: string, signal: AbortSignal | undefined) {
  const remote = await lsRemote(access, url, [], { signal });
  if ("trouble" in remote) {
    const { trouble } = remote;
    throw new GitFailed(["ls-remote"], { code: 128, out: "", err: trouble.message, trouble });
  }
  return toFormatOption(remote.refs.values().next().value);
}

/** The option of `git init` for a repository with that commit. */
export const toFormatOption = (commit: string | undefined): readonly string[] =>
  commit?.length === 64 ? ["--object-format=sha256"] : [];

/** What the disk refused, as a failure of git, whose words say the same. */
function localFailure(error: unknown): unknown {
  const { code, message } = error as NodeJS.ErrnoException;
  const isDisk =
    error instanceof Error && typeof code === "string" && /^E[A-Z]+$/.test(code) && code !== "ENOENT";
  return isDisk ? new GitFailed(["mirror"], { code: 1, out: "", err: message }) : error;
}

/**
 * Removes mirrors whose content cannot be read, so that the next attempt clones them again. Reads all of it, so only after a failure.
 * @returns whether one was removed
 */
export async function removeDamaged(access: GitAccess, folders: readonly string[]): Promise<boolean> {
  let removed = false;
  for (const folder of new Set(folders))
    await inTurn(folder, async () => {
      const args = ["fsck", "--full", "--no-dangling", "--no-progress"];
      const checked = await runGit(access, args, { cwd: folder }).catch(() => undefined);
      if (checked === undefined || checked.code === 0 || !DAMAGE.test(checked.err + checked.out)) return;
      await rm(folder, { recursive: true, force: true });
      removed = true;
    });
  return removed;
}

export async function hasCommit(access: GitAccess, folder: string, commit: string): Promise<boolean> {
  return (await runGit(access, ["cat-file", "-e", `${commit}^{commit}`], { cwd: folder })).code === 0;
}

// Not checked for its form, unlike what comes out of a sandbox: the remote's history cannot be changed any more.
const fetchCommand = (url: string): readonly string[] => [
  "-c",
  "fetch.fsckObjects=false",
  "fetch",
  "--quiet",
  "--prune",
  "--no-write-fetch-head",
  "--",
  url,
  ...REFS,
];
