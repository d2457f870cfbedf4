/** Fetches the submodules of a session's repository, and of a push. */
import type { SessionGit } from "../config/git-settings.ts";
import type { GitAccess } from "./git-access.ts";
import { hasCommit, updateMirror } from "./mirror.ts";
import { refusedRemote } from "./named-remote.ts";
import type { Relay } from "./relay.ts";
import { git, GitFailed } from "./run-git.ts";
import { linksIn, type Part, submodulesIn, type Submodule } from "./submodules.ts";
import { troubleOf } from "./remote.ts";
import { refusal, refusalOf, type Refusal } from "./trouble.ts";

/** The most on all levels together, and the most levels. Source: ours; the largest public projects have some hundred on three. */
const MAX_SUBMODULES = 200;
const MAX_LEVELS = 6;

/** Submodules of all levels, each after the one that contains it. */
export async function fetchParts(
  access: GitAccess,
  { url: base }: Pick<SessionGit, "url">,
  from: { readonly mirror: string; readonly commit: string },
  signal: AbortSignal,
): Promise<readonly Part[] | Refusal> {
  const limited = access.limitedTo(base);
  const parts: Part[] = [];
  // The loop adds to it.
  const todo = [{ folder: from.mirror, commit: from.commit, url: base, parent: "", depth: 1 }];
  for (const { folder, commit, url, parent, depth } of todo) {
    const submodules = await submodulesIn(limited, folder, commit, url);
    if ("refused" in submodules)
      return refusal(`${submodules.refused}${parent === "" ? "" : ` (in ${parent})`}`);
    for (const submodule of submodules) {
      if (depth > MAX_LEVELS || parts.length >= MAX_SUBMODULES)
        return refusal(`there are more than ${MAX_SUBMODULES} submodules, or ${MAX_LEVELS} levels of them`);
      const mirror = await fetchSubmodule(limited, base, submodule, signal);
      if (typeof mirror !== "string") return mirror;
      const start = { commit: submodule.commit, refs: [], defaultBranch: undefined };
      parts.push({ submodule, parent, mirror, start });
      const path = parent === "" ? submodule.path : `${parent}/${submodule.path}`;
      const { commit: inner, url: own } = submodule;
      todo.push({ folder: mirror, commit: inner, url: own, parent: path, depth: depth + 1 });
    }
  }
  return parts;
}

/**
 * The mirror of a submodule, with its commit.
 * @param access limited to what `base`, the session's repository, may name
 */
export async function fetchSubmodule(
  access: GitAccess,
  base: string,
  { name, url, commit }: Submodule,
  signal: AbortSignal,
): Promise<string | Refusal> {
  const called = `the submodule ${JSON.stringify(name)}`;
  const refused = await refusedRemote(access, base, url);
  if (refused !== undefined) return refusal(`${called} is not fetched: ${refused}`);
  try {
    const mirror = await updateMirror(access, url, { wants: commit, signal });
    if (!(await hasCommit(access, mirror, commit))) {
      // The commit is on no branch any more, but many servers still send it.
      const ref = `${commit}:refs/longhaul/wanted/${commit}`;
      const args = ["fetch", "--quiet", "--no-write-fetch-head", "--", url, ref];
      await git(access, ["-c", "fetch.fsckObjects=false", ...args], { cwd: mirror, url, signal });
    }
    return mirror;
  } catch (error) {
    if (!(error instanceof GitFailed)) throw error;
    if (/not our ref|remote ref|unadvertised object/.test(error.result.err))
      return refusal(`${called}: ${url} does not have the commit ${commit.slice(0, 12)}`);
    const { refused: why, isPassing } = refusalOf(troubleOf(url, error.result));
    return { refused: `${called} with commit ${commit.slice(0, 12)}: ${why}`, isPassing };
  }
}

/** Refuses a submodule whose commit was changed since `base` to one that its remote lacks: it could not be checked out. */
export async function unpushedSubmodule(
  { access, folder }: Relay,
  of: { readonly url: string; readonly base: string; readonly commit: string },
  signal: AbortSignal,
): Promise<Refusal | undefined> {
  const limited = access.limitedTo(of.url);
  const links = await linksIn(limited, folder, of.commit);
  if (links.size === 0) return undefined;
  const before = (await hasCommit(limited, folder, of.base))
    ? await linksIn(limited, folder, of.base)
    : links;
  const submodules = await submodulesIn(limited, folder, of.commit, of.url);
  if ("refused" in submodules) return refusal(submodules.refused);
  for (const submodule of submodules) {
    if (before.get(submodule.path) === submodule.commit) continue;
    const mirror = await fetchSubmodule(limited, of.url, submodule, signal);
    if (typeof mirror === "string") continue;
    if (mirror.isPassing) return mirror;
    return refusal(
      `a commit of a submodule has to be on its own remote first, which Longhaul does not push to: ${mirror.refused}`,
    );
  }
  return undefined;
}
