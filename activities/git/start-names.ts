/** Which of a remote's names `--ref` means, and what a session without one starts from: one reading for the check and for the work. */
import { inTurn } from "../sandbox/shared-work.ts";
import type { Remote } from "./remote.ts";
import { boundedFetch } from "./bounded-fetch.ts";
import type { GitAccess } from "./git-access.ts";
import { GitFailed, runGit } from "./run-git.ts";

/** Full names that a name may have on a remote, the likeliest first: as Git reads one, but a branch before a tag. Pure. */
export function namesOf(ref: string): readonly string[] {
  if (ref === "HEAD") return [ref];
  const names = [`refs/heads/${ref}`, `refs/tags/${ref}`, `refs/${ref}`];
  return ref.startsWith("refs/") ? [ref, ...names] : names;
}

export const isCommit = (ref: string): boolean => /^([0-9a-f]{40}|[0-9a-f]{64})$/.test(ref);
const isShortCommit = (ref: string): boolean => /^[0-9a-f]{7,63}$/.test(ref);

/** What `git ls-remote` must be asked about, to find where a session starts. */
export const asked = (ref: string | undefined): readonly string[] => [
  "refs/heads/*",
  "refs/tags/*",
  ...(ref === undefined ? [] : namesOf(ref)),
];

/**
 * Where a session starts: a full name on the remote, or a commit, which the remote may have although it lists none. `HEAD` means that
 * it is on no branch.
 */
export function startOn(
  { defaultBranch, refs }: Remote,
  ref: string | undefined,
): { readonly name: string } | { readonly commit: string } | undefined {
  const isDefault = ref === undefined || ref === "HEAD";
  if (isDefault && defaultBranch !== undefined) return { name: `refs/heads/${defaultBranch}` };
  const name = namesOf(ref ?? "HEAD").find((known) => refs.has(known));
  if (name !== undefined) return { name };
  return ref !== undefined && (isCommit(ref) || isShortCommit(ref)) ? { commit: ref } : undefined;
}

/** Why there is nothing to start from, and what can be done. */
export async function noStart(
  access: GitAccess,
  url: string,
  remote: Remote,
  ref: string | undefined,
): Promise<{ readonly message: string; readonly fix: string | undefined }> {
  const branches = [...remote.refs.keys()].filter((name) => name.startsWith("refs/heads/"));
  const some = branches.slice(0, MAX_SHOWN).map((name) => name.slice("refs/heads/".length));
  const more = branches.length > MAX_SHOWN ? `, … (${branches.length})` : "";
  const fix = branches.length === 0 ? undefined : `Choose --ref: ${some.join(", ")}${more}`;
  if (ref !== undefined && ref !== "HEAD")
    return {
      message: `The repository ${url} has no branch or tag ${ref}, and no other reference of that name.`,
      fix,
    };
  if (remote.refs.size === 0)
    return { message: `The repository ${url} is empty, so there is nothing to start from.`, fix };
  const gone = await unbornHead(access, url);
  return { message: `HEAD of the repository ${url} names ${gone ?? "a branch"}, which is not there.`, fix };
}

const MAX_SHOWN = 10;

/** The branch that HEAD names although it is not there. Git shows it only in its trace, and not of every server. */
async function unbornHead(access: GitAccess, url: string): Promise<string | undefined> {
  const traced = { ...access, environment: { ...access.environment, GIT_TRACE_PACKET: "1" } };
  const { err } = await runGit(traced, ["ls-remote", "--", url, "HEAD"], { url, timeoutMs: ASK_MS });
  return /unborn HEAD symref-target:refs\/heads\/(\S+)/.exec(err)?.[1];
}

const ASK_MS = 10_000;

/** Our name for what was fetched beside branches and tags. */
export const wantedRef = (name: string): string => `refs/longhaul/wanted/${name}`;

/**
 * Fetches a reference of any name, or a commit, into one of our repositories.
 * @returns whether the remote has it
 * @throws GitFailed for every other failure
 */
export async function fetchByName(
  access: GitAccess,
  folder: string,
  {
    url,
    name,
    signal,
    options = [],
  }: { url: string; name: string; signal?: AbortSignal; options?: readonly string[] },
): Promise<boolean> {
  const args = [
    "fetch",
    "--quiet",
    "--no-tags",
    "--no-write-fetch-head",
    ...options,
    "--",
    url,
    `+${name}:${wantedRef(name)}`,
  ];
  const command = ["-c", "fetch.fsckObjects=false", ...args];
  try {
    const fetched = await inTurn(folder, () => boundedFetch(access, command, { cwd: folder, url, signal }));
    if (fetched.code !== 0) throw new GitFailed(command, fetched);
    return true;
  } catch (error) {
    if (error instanceof GitFailed && IS_ABSENT.test(error.result.err)) return false;
    throw error;
  }
}

const IS_ABSENT = /not our ref|couldn't find remote ref|no such remote ref|unadvertised object/i;
