/** Takes a session's work out of the sandbox, with the tools' rights: the repository's configuration and hooks run there. */
import { deliverSource } from "../sandbox/agent/sources.ts";
import type { Checkout } from "./checkout.ts";
import { must, readOutput, shell } from "./sandbox-command.ts";
import { program, type CommandSandbox } from "../sandbox/own-command.ts";

export interface Prepared {
  /** The commit to deliver, and its reference: HEAD, or the one branch that is ahead if HEAD has nothing. Empty if there is none. */
  readonly head: string;
  readonly ref: string;
  /** Its commits that the base does not have; -1 if the base is not there. */
  readonly ahead: number;
  /** Its commits that no `known` commit has, without the one that was made of uncommitted changes. */
  readonly fresh: number;
  /** The commit made of uncommitted changes; absent if there were none. */
  readonly committed?: string;
  /** Files and other work that it does not have; the first ones. */
  readonly leftOut: readonly LeftOut[];
  readonly leftOutCount: number;
  /** Whether there are commits, stashes or worktrees among them. */
  readonly isElsewhere: boolean;
}

interface LeftOut {
  readonly path: string;
  readonly bytes: number;
  readonly reason: string;
  /** How many commits it has; for a worktree, or a branch without a commit, changed files. */
  readonly count?: number;
  /** A stash's own title. */
  readonly about?: string;
}

/** Commits uncommitted changes if `commit` is given. Idempotent. @returns `trouble` if the work cannot be delivered */
export async function prepareWork(
  sandbox: CommandSandbox,
  order: {
    readonly base: string;
    /** Commits that are at the remote. */
    readonly known?: readonly string[];
    /** What the branch has at the remote: only a branch that goes on from there can be pushed to it. */
    readonly onto?: readonly string[];
    /** Whether what the sandbox has fetched counts as known, too: if the remote cannot be asked. */
    readonly remotes?: true;
    /** Whether the content of files in Git LFS is pushed too; else a change of one is refused. */
    readonly lfs: boolean;
    readonly commit?:
      | { readonly message: string; readonly date?: string; readonly author: Checkout["author"] }
      | undefined;
  },
): Promise<Prepared | { readonly trouble: string }> {
  const out = await must(sandbox, "prepare the push", {
    ...program("LONGHAUL_DELIVER", deliverSource),
    stdin: Buffer.from(JSON.stringify(order)),
  });
  return JSON.parse(out) as Prepared | { trouble: string };
}

/**
 * The work's commits as a bundle, piece by piece, with one reference.
 * @param base is left out with its history; undefined: nothing is left out
 * @returns undefined if it has more than `maxBytes`
 * @throws SandboxUnavailable (retryable), SandboxLost
 */
export function readBundle(
  sandbox: CommandSandbox,
  {
    ref,
    base,
    maxBytes,
  }: { readonly ref: string; readonly base: string | undefined; readonly maxBytes: number },
): Promise<AsyncIterable<Uint8Array> | undefined> {
  const range = base === undefined ? [ref] : [ref, `^${base}`];
  const argv = ["git", "bundle", "create", "--quiet", "-", ...range];
  return readOutput(sandbox, "bundle the commits", { argv, maxOutputBytes: maxBytes });
}

/**
 * The content of a file in Git LFS, from the workspace's store, piece by piece: nothing if it is not there.
 * @returns undefined if it is larger than `maxBytes`
 */
export function readLfsObject(
  sandbox: CommandSandbox,
  oid: string,
  maxBytes: number,
): Promise<AsyncIterable<Uint8Array> | undefined> {
  const script = `file=$(git rev-parse --git-common-dir)/lfs/objects/$1; if [ -f "$file" ]; then cat -- "$file"; fi`;
  const argv = shell(script, `${oid.slice(0, 2)}/${oid.slice(2, 4)}/${oid}`);
  return readOutput(sandbox, "read a file of Git LFS", { argv, maxOutputBytes: maxBytes });
}
