/** Fetches the submodules of a session's repository, and of a push. */
import {
  howToName,
  isNamed,
  isWithinNetwork,
  type NamedRepositories,
  type NetworkRule,
} from "../config/repository-place.ts";
import type { GitAccess } from "./git-access.ts";
import { hasCommit, updateMirror } from "./mirror.ts";
import type { Relay } from "./relay.ts";
import { refusedRemote, remoteTrouble } from "./remote.ts";
import { GitFailed } from "./run-git.ts";
import { fetchByName } from "./start-point.ts";
import { addressesIn, linksIn, type Part, submodulesIn, type Submodule } from "./submodules.ts";
import { quoted, refusal, toRefusal, type Refusal } from "./trouble.ts";

/** The most on all levels together, and the most levels. Chosen: the largest public projects have some hundred on three. */
const MAX_SUBMODULES = 200;
const MAX_LEVELS = 6;

/** Submodules of all levels, each after the one that contains it. */
export async function fetchParts(
  access: GitAccess,
  named: NamedRepositories,
  from: { readonly mirror: string; readonly commit: string },
  signal: AbortSignal,
): Promise<readonly Part[] | Refusal> {
  const limited = access.limitedTo(named);
  const parts: Part[] = [];
  // The loop adds to it.
  const todo = [{ folder: from.mirror, commit: from.commit, url: named.url, parent: "", depth: 1 }];
  for (const { folder, commit, url, parent, depth } of todo) {
    const submodules = await submodulesIn(limited, folder, commit, url);
    if ("refused" in submodules)
      return refusal(`${submodules.refused}${parent === "" ? "" : ` (in ${parent})`}`);
    for (const submodule of submodules) {
      if (depth > MAX_LEVELS || parts.length >= MAX_SUBMODULES)
        return refusal(`there are more than ${MAX_SUBMODULES} submodules, or ${MAX_LEVELS} levels of them`);
      const mirror = await fetchSubmodule(limited, named, submodule, signal);
      if (typeof mirror !== "string") return mirror;
      const start = { commit: submodule.commit, name: submodule.commit, refs: [], defaultBranch: undefined };
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
 * @param access limited to what the session's person named
 */
export async function fetchSubmodule(
  access: GitAccess,
  named: NamedRepositories,
  { name, url, commit }: Submodule,
  signal: AbortSignal,
): Promise<string | Refusal> {
  const called = `the submodule ${JSON.stringify(name)}`;
  const refused = await refusedRemote(named, url);
  if (refused !== undefined) return refusal(`${called} is not fetched: ${refused}`);
  try {
    const mirror = await updateMirror(access, url, { wants: commit, signal });
    // A commit that is on no branch any more is still sent by many servers.
    const isThere =
      (await hasCommit(access, mirror, commit)) ||
      (await fetchByName(access, mirror, { url, name: commit, signal }));
    return isThere ? mirror : refusal(`${called}: ${url} does not have the commit ${commit.slice(0, 12)}`);
  } catch (error) {
    if (!(error instanceof GitFailed)) throw error;
    const trouble = remoteTrouble(url, error.result);
    // Without a credential a private repository is not there.
    const isClosed = !access.opens(url) && (trouble.kind === "credential" || trouble.kind === "unknown");
    const fix = isClosed ? `No credential of the worker is used for it; ${howToName(url)}` : trouble.fix;
    const { refused: why, isPassing } = toRefusal({ ...trouble, fix });
    return { refused: `${called} with commit ${commit.slice(0, 12)}: ${why}`, isPassing };
  }
}

/**
 * Refuses a submodule whose commit was changed since `base` to one that its remote lacks: it could not be checked out. Only remotes are
 * asked that `base` or the person names: what a session writes into `.gitmodules` directs no request.
 */
export async function unpushedSubmodule(
  { access, folder }: Relay,
  of: {
    readonly named: NamedRepositories;
    readonly network: NetworkRule;
    /** The commit that the session started from. */
    readonly base: string;
    readonly commit: string;
  },
  signal: AbortSignal,
): Promise<Refusal | undefined> {
  const { named, base, commit } = of;
  const limited = access.limitedTo(named);
  const links = await linksIn(limited, folder, commit);
  if (links.size === 0) return undefined;
  const hasBase = await hasCommit(limited, folder, base);
  const before = hasBase ? await linksIn(limited, folder, base) : links;
  const submodules = await submodulesIn(limited, folder, commit, named.url);
  if ("refused" in submodules) return refusal(submodules.refused);
  const known = hasBase ? await addressesIn(limited, folder, base, named.url) : [];
  for (const submodule of submodules) {
    if (before.get(submodule.path) === submodule.commit) continue;
    const { name, url } = submodule;
    const called = `the submodule ${quoted(name)}`;
    if (!known.includes(url) && !isNamed(named, url))
      return refusal(
        `${called} has the address ${quoted(url)}, which the commit that the session started from does not name, so it is not contacted; ${howToName(url)}`,
      );
    if (!isWithinNetwork(of.network, named, url))
      return refusal(
        `${called}: sandbox.network does not let ${quoted(url)} be contacted; ${howToName(url)}`,
      );
    const mirror = await fetchSubmodule(limited, named, submodule, signal);
    if (typeof mirror === "string") continue;
    if (mirror.isPassing) return mirror;
    return refusal(
      `a commit of a submodule has to be on its own remote first, which Longhaul does not push to: ${mirror.refused}`,
    );
  }
  return undefined;
}
