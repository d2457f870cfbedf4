/**
 * What a session gets of a repository: one line of history, from a branch, a tag or a commit. Which of a remote's names `--ref` means,
 * and what a session without one starts from, is read here for the check and for the work.
 */
import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { inTurn } from "../sandbox/shared-work.ts";
import { cutTail } from "../text/cut.ts";
import type { GitAccess } from "./git-access.ts";
import { toFormatOption } from "./mirror.ts";
import type { Remote } from "./remote.ts";
import { git, gitEnvironment, GitFailed, runGit, boundedFetch } from "./run-git.ts";

/** Full names that a name may have on a remote, the likeliest first: as Git reads one, but a branch before a tag. */
export function remoteNames(ref: string): readonly string[] {
  if (ref === "HEAD") return [ref];
  const names = [`refs/heads/${ref}`, `refs/tags/${ref}`, `refs/${ref}`];
  return ref.startsWith("refs/") ? [ref, ...names] : names;
}

export const isCommit = (ref: string): boolean => /^([0-9a-f]{40}|[0-9a-f]{64})$/.test(ref);
const isShortCommit = (ref: string): boolean => /^[0-9a-f]{7,63}$/.test(ref);

/** What `git ls-remote` must be asked about, to find where a session starts. */
export const refPatterns = (ref: string | undefined): readonly string[] => [
  "refs/heads/*",
  "refs/tags/*",
  ...(ref === undefined ? [] : remoteNames(ref)),
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
  const name = remoteNames(ref ?? "HEAD").find((known) => refs.has(known));
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
const wantedRef = (name: string): string => `refs/longhaul/wanted/${name}`;

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

export interface StartPoint {
  readonly commit: string;
  /** The branch, else what the person named; `HEAD` if that is on no branch. */
  readonly name: string;
  /** The references that the sandbox gets, with the objects they point to: remote branches and tags. */
  readonly refs: readonly (readonly [name: string, object: string])[];
  readonly defaultBranch: string | undefined;
}

/** @returns undefined if the mirror has no such branch, tag, commit or other reference that was fetched into it */
export async function findStartPoint(
  access: GitAccess,
  mirror: string,
  request: { readonly ref: string | undefined; readonly defaultBranch: string | undefined },
): Promise<StartPoint | undefined> {
  const { ref, defaultBranch } = request;
  const resolve = async (name: string): Promise<string | undefined> => {
    const answer = await runGit(access, ["rev-parse", "--verify", "--quiet", "--end-of-options", name], {
      cwd: mirror,
    });
    return answer.code === 0 ? answer.out.trim() : undefined;
  };
  const isDefault = ref === undefined || ref === "HEAD";
  const names =
    isDefault && defaultBranch !== undefined ? [`refs/heads/${defaultBranch}`] : remoteNames(ref ?? "HEAD");
  let [full, commit]: [string?, string?] = [];
  for (full of names) {
    commit = await resolve(`${/^refs\/(heads|tags)\//.test(full) ? full : wantedRef(full)}^{commit}`);
    if (commit !== undefined) break;
  }
  if (commit === undefined && ref !== undefined && /^[0-9a-f]{7,64}$/.test(ref))
    [full, commit] = [ref, await resolve(`${ref}^{commit}`)];
  if (commit === undefined || full === undefined) return undefined;
  const branch = full.startsWith("refs/heads/") ? full.slice("refs/heads/".length) : undefined;
  const name = branch ?? ref ?? full;
  const refs: [string, string][] = [];
  if (branch !== undefined) refs.push([`refs/remotes/origin/${branch}`, commit]);
  const other = defaultBranch === undefined ? undefined : await resolve(`refs/heads/${defaultBranch}`);
  if (other !== undefined && defaultBranch !== branch)
    refs.push([`refs/remotes/origin/${defaultBranch}`, other]);
  const tags = await git(
    access,
    ["for-each-ref", "--format=%(refname) %(objectname)", `--merged=${commit}`, "refs/tags"],
    { cwd: mirror },
  );
  for (const line of tags.split("\n")) {
    const [tag = "", object = ""] = line.split(" ");
    if (tag !== "") refs.push([tag, object]);
  }
  return { commit, name, refs, defaultBranch };
}

/** More files and folders no checkout in a sandbox would end with. Chosen: twice the largest public repositories. */
const MAX_ENTRIES = 1_000_000;
/** Source: Linux' PATH_MAX without its end. */
const MAX_PATH_BYTES = 4_095;

/**
 * Why a commit's files cannot be checked out: a small tree that names itself often enough has billions of them. Reads no more than
 * the limit. @returns undefined if they can, as far as the listing tells
 */
export async function tooLargeTree(
  access: GitAccess,
  mirror: string,
  commit: string,
  { signal, maxEntries = MAX_ENTRIES }: { readonly signal: AbortSignal; readonly maxEntries?: number },
): Promise<string | undefined> {
  const child = spawn("git", ["ls-tree", "-r", "-t", "-z", "--name-only", "--full-tree", commit], {
    cwd: mirror,
    env: gitEnvironment(access),
    stdio: ["ignore", "pipe", "pipe"],
    signal,
  });
  const ended = new Promise<void>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", () => resolve());
  });
  ended.catch(() => undefined);
  let stderrText = "";
  child.stderr.on("data", (bytes: Buffer) => (stderrText = cutTail(stderrText + String(bytes), 1_000)));
  let entries = 0;
  let pathBytes = 0;
  try {
    for await (const piece of child.stdout) {
      const bytes = piece as Buffer;
      for (let from = 0; from < bytes.length;) {
        const end = bytes.indexOf(0, from);
        pathBytes += (end === -1 ? bytes.length : end) - from;
        if (pathBytes > MAX_PATH_BYTES) return TOO_DEEP;
        if (end === -1) break;
        [entries, pathBytes, from] = [entries + 1, 0, end + 1];
      }
      if (entries > maxEntries) return `it has more than ${maxEntries} files and folders`;
    }
    await ended;
    // Git has a limit of its own for nested folders.
    return /maximum allowed tree depth/.test(stderrText) ? TOO_DEEP : undefined;
  } finally {
    child.kill();
  }
}

const TOO_DEEP = "its folders are nested too deep for any path to lead to them";

export interface Pack {
  readonly refs: StartPoint["refs"];
  /** The text of the file `shallow`: commits whose parents are left out. */
  readonly shallow: string;
  readonly bytes: AsyncIterable<Uint8Array>;
}

/**
 * Gives `use` the objects of a start point as a stream.
 * @param depth commits of history; 0 means all
 * @throws GitFailed, also while its output is read
 */
export async function withPack<T>(
  access: GitAccess,
  mirror: string,
  from: {
    readonly start: StartPoint;
    readonly depth: number;
    /** A commit whose history is left out. */
    readonly known?: string;
    readonly signal: AbortSignal;
  },
  use: (pack: Pack) => Promise<T>,
): Promise<T> {
  const { start, depth, known, signal } = from;
  const without = known === undefined ? [] : [`^${known}`];
  const pack = (folder: string, refs: StartPoint["refs"], shallow: string) =>
    use({
      refs,
      shallow,
      bytes: packOf(access, folder, [start.commit, ...refs.map(([, object]) => object), ...without], signal),
    });
  if (depth === 0) return pack(mirror, start.refs, "");
  const folder = await mkdtemp(join(access.folder, "shallow-"));
  try {
    await git(access, ["init", "--quiet", "--bare", ...toFormatOption(start.commit), folder], { signal });
    const args = ["fetch", "--quiet", "--no-tags", `--depth=${depth}`, `file://${mirror}`];
    await git(access, ["-c", "fetch.fsckObjects=false", ...args, start.commit], { cwd: folder, signal });
    const shallow = await readFile(join(folder, "shallow"), "utf8").catch(() => "");
    const refs = start.refs.filter(([, object]) => object === start.commit);
    return await pack(folder, refs, shallow);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function* packOf(
  access: GitAccess,
  folder: string,
  objects: readonly string[],
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const args = ["pack-objects", "--revs", "--stdout", "--quiet", "--delta-base-offset"];
  const child = spawn("git", args, {
    cwd: folder,
    env: gitEnvironment(access),
    stdio: ["pipe", "pipe", "ignore"],
    signal,
  });
  const ended = new Promise<number | null>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", resolve);
  });
  ended.catch(() => undefined);
  child.stdin.on("error", () => undefined);
  child.stdin.end(`${objects.join("\n")}\n`);
  try {
    for await (const piece of child.stdout) yield piece as Uint8Array;
    const code = await ended;
    if (code !== 0)
      throw new GitFailed(args, { code: code ?? 1, out: "", err: `it ended with code ${code}` });
  } finally {
    child.kill();
  }
}
