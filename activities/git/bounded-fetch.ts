/** A fetch from a remote, which may send without end: Git has a limit neither for its size nor for its time. */
import { readdir, rm, stat, statfs } from "node:fs/promises";
import { join } from "node:path";
import type { GitAccess } from "./git-access.ts";
import { GitFailed, runGit, type GitResult } from "./run-git.ts";
import type { RemoteTrouble } from "./trouble.ts";

/** How often the size is looked at. Source: ours; a disk takes some hundred MB in that time. */
const LOOK_MS = 500;
/** A first clone of a monorepo takes long. Source: ours. */
const TIMEOUT_MS = 30 * 60_000;

export interface FetchCall {
  /** Our own repository, into which Git fetches. */
  readonly cwd: string;
  readonly url: string;
  readonly signal?: AbortSignal | undefined;
  /** At most half of what is free on the disk, which all sessions share. */
  readonly maxBytes?: number | undefined;
  readonly timeoutMs?: number | undefined;
}

/**
 * @returns how Git ended
 * @throws GitFailed, with its trouble, if what it fetches is too large or takes too long: nothing of it is kept
 */
export async function boundedFetch(
  access: GitAccess,
  args: readonly string[],
  { cwd, url, signal, timeoutMs = TIMEOUT_MS, maxBytes }: FetchCall,
): Promise<GitResult> {
  const packs = join(cwd, "objects", "pack");
  const limit = Math.min(maxBytes ?? Number.POSITIVE_INFINITY, await halfOfFree(cwd));
  const before = await sizeOf(packs);
  const tooLarge = new AbortController();
  let looking: Promise<void> = Promise.resolve();
  const timer = setInterval(() => {
    looking = sizeOf(packs).then((bytes) => {
      if (bytes - before > limit) tooLarge.abort();
    });
  }, LOOK_MS);
  try {
    const both = signal === undefined ? tooLarge.signal : AbortSignal.any([signal, tooLarge.signal]);
    const result = await runGit(access, args, { cwd, url, signal: both, timeoutMs });
    if (result.code === 124) throw tooMuch(args, url, `takes longer than ${minutes(timeoutMs)}`);
    return result;
  } catch (error) {
    const isOurs = error instanceof GitFailed || tooLarge.signal.aborted;
    if (!isOurs || signal?.aborted === true) throw error;
    await removeParts(packs);
    if (!tooLarge.signal.aborted) throw error;
    const mib = Math.floor(limit / 2 ** 20);
    throw tooMuch(
      args,
      url,
      `has more than ${mib} MiB, ${limit === maxBytes ? "the limit" : "half of what was free on the worker's disk"}`,
    );
  } finally {
    clearInterval(timer);
    await looking;
  }
}

const minutes = (ms: number): string => (ms < 60_000 ? `${ms / 1_000} s` : `${ms / 60_000} minutes`);

function tooMuch(args: readonly string[], url: string, why: string): GitFailed {
  const trouble: RemoteTrouble = {
    kind: "refused",
    message: `What ${url} sends ${why}, so it was stopped and nothing of it is kept`,
    fix: "It is not tried again. If the repository is meant, make room on the disk of the worker's LONGHAUL_GIT_FOLDER, or a faster way to the server; else choose another --repo.",
  };
  return new GitFailed(args, { code: 128, out: "", err: trouble.message, trouble });
}

async function halfOfFree(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder);
  return (bavail * bsize) / 2;
}

/** Of packs, also of those that are being received. */
async function sizeOf(folder: string): Promise<number> {
  const names = await readdir(folder).catch(() => []);
  const sizes = await Promise.all(
    names.map((name) =>
      stat(join(folder, name)).then(
        ({ size }) => size,
        () => 0,
      ),
    ),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}

/** What a stopped Git had received. */
async function removeParts(folder: string): Promise<void> {
  for (const name of await readdir(folder).catch(() => []))
    if (name.startsWith("tmp_")) await rm(join(folder, name), { force: true });
}
