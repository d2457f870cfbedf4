/** What a session gets of a repository: one line of history, from a branch, a tag or a commit. */
import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import type { GitAccess } from "./git-access.ts";
import { formatOf } from "./mirror.ts";
import { namesOf, wantedRef } from "./start-names.ts";
import { git, gitEnvironment, runGit } from "./run-git.ts";

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
  wanted: { readonly ref: string | undefined; readonly defaultBranch: string | undefined },
): Promise<StartPoint | undefined> {
  const { ref, defaultBranch } = wanted;
  const resolve = async (name: string): Promise<string | undefined> => {
    const found = await runGit(access, ["rev-parse", "--verify", "--quiet", "--end-of-options", name], {
      cwd: mirror,
    });
    return found.code === 0 ? found.out.trim() : undefined;
  };
  const isDefault = ref === undefined || ref === "HEAD";
  const names =
    isDefault && defaultBranch !== undefined ? [`refs/heads/${defaultBranch}`] : namesOf(ref ?? "HEAD");
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

export interface Pack {
  readonly refs: StartPoint["refs"];
  /** The text of the file `shallow`: commits whose parents are left out. */
  readonly shallow: string;
  readonly bytes: AsyncIterable<Uint8Array>;
}

/**
 * Gives `use` the objects of a start point as a stream.
 * @param depth commits of history; 0 means all
 * @throws GitFailed, and Error if git fails while its output is read
 */
export async function withPack<T>(
  access: GitAccess,
  mirror: string,
  from: { readonly start: StartPoint; readonly depth: number; readonly signal: AbortSignal },
  use: (pack: Pack) => Promise<T>,
): Promise<T> {
  const { start, depth, signal } = from;
  const pack = (folder: string, refs: StartPoint["refs"], shallow: string) =>
    use({
      refs,
      shallow,
      bytes: packOf(access, folder, [start.commit, ...refs.map(([, object]) => object)], signal),
    });
  if (depth === 0) return pack(mirror, start.refs, "");
  const folder = await mkdtemp(join(access.folder, "shallow-"));
  try {
    await git(access, ["init", "--quiet", "--bare", ...formatOf(start.commit), folder], { signal });
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
    if (code !== 0) throw new Error(`git pack-objects ended with code ${code}`);
  } finally {
    child.kill();
  }
}
