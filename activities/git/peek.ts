/** One file of a remote repository, read before anything of it is cloned. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { boundedFetch } from "./bounded-fetch.ts";
import type { GitAccess } from "./git-access.ts";
import { formatOf } from "./mirror.ts";
import { lsRemote, troubleOf } from "./remote.ts";
import { git, GitFailed, runGit } from "./run-git.ts";
import { isCommit, namesOf } from "./start-names.ts";
import type { RemoteTrouble } from "./trouble.ts";

/** Source: ours; such a file is written by hand. */
const MAX_BYTES = 1024 * 1024;
/** Of all that is fetched for it: a server without filters sends every file of the commit. Source: ours. */
const MAX_FETCHED_BYTES = 512 * 1024 * 1024;
/** A person waits for it. Source: ours. */
const TIMEOUT_MS = 5 * 60_000;

interface Peek {
  /** Branch, tag, other reference or whole commit; undefined: the default branch. */
  readonly ref: string | undefined;
  readonly paths: readonly string[];
  readonly maxBytes?: number;
}

/**
 * The first of `paths` that a commit has. Fetches only the trees and that file if the server can do that, else all files.
 * @returns undefined if it has none of them
 */
export async function peekFile(
  access: GitAccess,
  url: string,
  { ref, paths, maxBytes = MAX_FETCHED_BYTES }: Peek,
): Promise<
  { readonly path: string; readonly text: string } | { readonly trouble: RemoteTrouble } | undefined
> {
  const cwd = await mkdtemp(join(tmpdir(), "longhaul-peek-"));
  try {
    const remote = await lsRemote(access, url);
    if ("trouble" in remote) return remote;
    await git(access, ["init", "--quiet", "--bare", ...formatOf(remote.refs.values().next().value), "."], {
      cwd,
    });
    // Git fetches missing objects only from a remote that has a name.
    await git(access, ["remote", "add", "origin", url], { cwd });
    await git(access, ["config", "remote.origin.promisor", "true"], { cwd });
    const names = ref === undefined ? ["HEAD"] : [...namesOf(ref), ...(isCommit(ref) ? [ref] : [])];
    const bounds = { cwd, url, maxBytes, timeoutMs: TIMEOUT_MS };
    let fetched = { code: 1, out: "", err: "" };
    for (const name of names) {
      const args = ["fetch", "--quiet", "--no-tags", "--depth=1", "--filter=blob:none", "origin", name];
      fetched = await boundedFetch(access, ["-c", "fetch.fsckObjects=false", ...args], bounds);
      if (fetched.code === 0 || !/remote ref/.test(fetched.err)) break;
    }
    if (fetched.code !== 0) return { trouble: troubleOf(url, fetched) };
    const listed = await git(access, ["ls-tree", "-z", "--full-tree", "FETCH_HEAD", "--", ...paths], { cwd });
    for (const path of paths) {
      // A link may lead anywhere.
      const entry = listed.split("\0").find((line) => line.startsWith("100") && line.endsWith(`\t${path}`));
      const blob = entry?.split(/[ \t]/)[2];
      if (blob === undefined) continue;
      // Fetches it, if it is not there.
      const there = await boundedFetch(access, ["cat-file", "-e", blob], bounds);
      if (there.code !== 0) return { trouble: troubleOf(url, there) };
      if (Number(await git(access, ["cat-file", "-s", blob], { cwd })) > MAX_BYTES) continue;
      return { path, text: (await runGit(access, ["cat-file", "blob", blob], { cwd })).out };
    }
    return undefined;
  } catch (error) {
    if (!(error instanceof GitFailed) || error.result.trouble === undefined) throw error;
    return { trouble: error.result.trouble };
  } finally {
    await rm(cwd, { recursive: true, force: true });
  }
}
