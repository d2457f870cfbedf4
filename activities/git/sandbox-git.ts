/**
 * Git in the sandbox: checks a repository out into its /workspace, and takes a session's work out of it, with the tools' rights: the
 * repository's configuration and hooks run there.
 */
import { randomUUID } from "node:crypto";
import { posix } from "node:path";
import type { GitIdentity } from "../config/commit-settings.ts";
import { retryable, fatal } from "../contract/failures.ts";
import { deliverSource, lfsSource } from "../sandbox/agent/sources.ts";
import {
  program,
  type CommandSandbox,
  readEnd,
  runFed,
  runOwn,
  wholeOutput,
} from "../sandbox/own-command.ts";
import type { CommandState, SandboxCommand } from "../sandbox/sandbox.ts";
import { gitReason } from "./git-words.ts";
import type { Pack } from "./start-point.ts";
import type { Part } from "./submodules.ts";

export interface Prepared {
  /** The commit to deliver, and its reference: HEAD, or the one branch that is ahead if HEAD has nothing. Empty if there is none. */
  readonly head: string;
  readonly ref: string;
  /** The commit's files, as Git names them. */
  readonly tree: string;
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
  request: {
    readonly base: string;
    /** Commits that are at the remote. */
    readonly known?: readonly string[];
    /** What the branch has at the remote: only a branch that goes on from there can be pushed to it. */
    readonly onto?: readonly string[];
    /** Whether what the sandbox has fetched counts as known, too: if the remote cannot be asked. */
    readonly remotes?: true;
    /** Whether the content of files in Git LFS is pushed too; else a change of one is refused. */
    readonly lfs: boolean;
    /** Whether each tracked file is read, whatever the workspace's index says of it. */
    readonly distrust?: boolean;
    readonly commit?:
      | { readonly message: string; readonly date?: string; readonly author: CheckoutOrder["author"] }
      | undefined;
  },
): Promise<Prepared | { readonly trouble: string }> {
  const out = await must(sandbox, "prepare the push", {
    ...program("LONGHAUL_DELIVER", deliverSource),
    stdin: Buffer.from(JSON.stringify(request)),
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

/** Chosen: large repositories are unpacked and checked out at disk speed. */
const TIMEOUT_MS = 20 * 60_000;

/** An image may set a language, which outranks LC_ALL. Replaced objects would make another history of what is delivered. */
const ENVIRONMENT = {
  LC_ALL: "C.UTF-8",
  LANGUAGE: "",
  GIT_TERMINAL_PROMPT: "0",
  GIT_LFS_SKIP_SMUDGE: "1",
  GIT_NO_REPLACE_OBJECTS: "1",
};

type Order = Pick<SandboxCommand, "argv" | "env" | "stdin" | "maxOutputBytes" | "cwd">;

export const shell = (script: string, ...shellArguments: string[]): string[] => [
  "sh",
  "-ec",
  script,
  "sh",
  ...shellArguments,
];

/** A failed one is retried: nothing of the session is lost with it. */
const command = (request: Order) => ({
  ...request,
  id: `git-${randomUUID()}`,
  env: { ...ENVIRONMENT, ...request.env },
  timeoutMs: TIMEOUT_MS,
});

/** @returns what it wrote, at most 1 MiB. @throws SandboxUnavailable if it failed */
export async function must(sandbox: CommandSandbox, what: string, request: Order): Promise<string> {
  return textOf(sandbox, what, await runOwn(sandbox, command(request)));
}

/**
 * Runs a command that reads `input` as it comes. @returns how many bytes it had
 * @throws SandboxUnavailable if it failed
 */
export async function feedAll(
  sandbox: CommandSandbox,
  what: string,
  request: Order,
  input: AsyncIterable<Uint8Array>,
): Promise<number> {
  const { state, bytes } = await runFed(sandbox, command(request), input);
  await textOf(sandbox, what, state);
  return bytes;
}

/**
 * A command's output, to be read to its end. @returns undefined if it wrote more than `maxOutputBytes`
 * @throws SandboxUnavailable if it failed, and while it is read if it is gone
 */
async function readOutput(
  sandbox: CommandSandbox,
  what: string,
  request: Order & { readonly maxOutputBytes: number },
): Promise<AsyncIterable<Uint8Array> | undefined> {
  const state = await runOwn(sandbox, command(request));
  if (state.outBytes > state.outKept || state.outBytes > request.maxOutputBytes) {
    await sandbox.discard(state.id);
    return undefined;
  }
  if (state.kind !== "exited" || state.exitCode !== 0) await textOf(sandbox, what, state);
  return thenDiscarded(sandbox, state);
}

async function* thenDiscarded(sandbox: CommandSandbox, state: CommandState): AsyncGenerator<Uint8Array> {
  try {
    yield* wholeOutput(sandbox, state);
  } finally {
    await sandbox.discard(state.id);
  }
}

async function textOf(sandbox: CommandSandbox, what: string, state: CommandState): Promise<string> {
  const end = await readEnd(sandbox, state);
  if ("out" in end) return end.out;
  throw retryable(
    "SandboxUnavailable",
    `Git in the sandbox could not ${what} (${end.how}): ${gitReason(end.message)}. Nothing is lost; it is tried again.`,
  );
}

/** Small enough for a checkpoint, which leaves out files larger than 64 MiB. */
const MAX_PACK_MIB = 48;

export interface CheckoutOrder {
  readonly url: string;
  /** Undefined for a checkout on no branch, as the base of several sessions' workspaces. */
  readonly branch: string | undefined;
  readonly commit: string;
  readonly defaultBranch: string | undefined;
  readonly author: GitIdentity;
}

/** Every checkout's settings. `lfs.skipdownloaderrors`: an old commit's file stays a pointer instead of failing. */
const SETTINGS = `git config user.name "$NAME"
git config user.email "$EMAIL"
git remote add origin "$URL"
git config lfs.skipdownloaderrors true
git config pack.packSizeLimit ${MAX_PACK_MIB}m`;

const BEGIN = `find . -mindepth 1 -delete
git init -q \${FORMAT:+--object-format="$FORMAT"} -b "\${BRANCH:-main}" .
if [ -z "$BRANCH" ]; then git config gc.auto 0; fi
${SETTINGS}`;

/** Begins a submodule as `git submodule update --init` does: its repository below its parent's, and registered there. */
const BEGIN_PART = `parent=$(git rev-parse --git-dir)
git config "submodule.$SUBMODULE.url" "$URL"
git config "submodule.$SUBMODULE.active" true
own="$parent/modules/$SUBMODULE"
mkdir -p "$FOLDER" "$own"
own=$(realpath "$own")
git init -q \${FORMAT:+--object-format="$FORMAT"} --bare "$own"
git -C "$own" config core.bare false
git -C "$own" config core.worktree "$(realpath --relative-to="$own" "$FOLDER")"
printf 'gitdir: %s\\n' "$(realpath --relative-to="$FOLDER" "$own")" > "$FOLDER/.git"
cd "$FOLDER"
${SETTINGS}`;

// A base's set-up may have changed what a newer commit changes: then it runs again (agent/dependencies.py).
const END = `own=$(git rev-parse --git-dir)
if [ -n "$SHALLOW" ]; then printf '%s\\n' "$SHALLOW" > "$own/shallow"; fi
git update-ref --stdin
if [ -n "$DEFAULT" ] && git rev-parse -q --verify "refs/remotes/origin/$DEFAULT" >/dev/null
then git symbolic-ref refs/remotes/origin/HEAD "refs/remotes/origin/$DEFAULT"; fi
if [ -n "$SPLIT" ] && [ -n "$(find "$own/objects/pack" -name '*.pack' -size +60M)" ]; then git repack -adq; fi
if [ -z "$BRANCH" ]; then git checkout -q --detach "$COMMIT"
elif ! git checkout -q -B "$BRANCH" "$COMMIT" 2>/dev/null
then git checkout -q -f -B "$BRANCH" "$COMMIT"; touch "$own/longhaul-set-up-again"; fi`;

// A base of the team has the author of who made it.
const OWN_AUTHOR = `if [ "$(git config user.name)" != "$NAME" ]; then git config user.name "$NAME"; fi
if [ "$(git config user.email)" != "$EMAIL" ]; then git config user.email "$EMAIL"; fi`;

const BEGIN_BRANCH = `${OWN_AUTHOR}
git update-ref "refs/heads/$BRANCH" "$COMMIT"
git symbolic-ref HEAD "refs/heads/$BRANCH"`;

/** A name of then may be the folder of one of now. The objects stay: the history of the newer commit has them. */
const WITHOUT_REFS = `find .git -name '*.lock' -type f -delete
git symbolic-ref -q --delete refs/remotes/origin/HEAD || true
git for-each-ref --format='delete %(refname)' refs/remotes/origin refs/tags | git update-ref --stdin`;

const HAS_LFS = `if command -v git-lfs >/dev/null; then echo yes; fi`;

/** Replaces pointers by files; installs the filter if the image has git-lfs without it. */
const LFS = `git config --get filter.lfs.process >/dev/null || git lfs install --local --skip-repo >/dev/null
git lfs checkout >/dev/null`;

/**
 * Empties /workspace and makes it a checkout on the session's branch. @returns how many bytes the pack had
 * @throws SandboxUnavailable (retryable), SandboxLost
 */
export async function checkOut(
  sandbox: CommandSandbox,
  checkout: CheckoutOrder,
  pack: Pack,
): Promise<number> {
  const { branch = "", url, author, commit, defaultBranch = "" } = checkout;
  const env = {
    BRANCH: branch,
    URL: url,
    NAME: author.name,
    EMAIL: author.email,
    FORMAT: formatName(commit),
  };
  await must(sandbox, "prepare the checkout", { argv: shell(BEGIN), env });
  return unpack(sandbox, pack, { cwd: ".", commit, branch, defaultBranch, isSaved: branch !== "" });
}

/** Puts a checkout that is on no branch onto the session's. Writes no file of the work. @throws as `checkOut` */
export async function beginBranch(
  sandbox: CommandSandbox,
  { branch, commit, author }: Pick<CheckoutOrder, "commit" | "author"> & { readonly branch: string },
): Promise<void> {
  const env = { BRANCH: branch, COMMIT: commit, NAME: author.name, EMAIL: author.email };
  await must(sandbox, "begin the session's branch", { argv: shell(BEGIN_BRANCH), env });
}

/** Takes a checkout of an older commit on to a newer one, on the session's branch. @throws as `checkOut` */
export async function advance(
  sandbox: CommandSandbox,
  {
    commit,
    branch,
    author,
    defaultBranch = "",
  }: Pick<CheckoutOrder, "commit" | "defaultBranch" | "author"> & { branch: string },
  pack: Pack,
): Promise<number> {
  // Left by an attempt whose worker died: no one else works here yet.
  const env = { NAME: author.name, EMAIL: author.email };
  await must(sandbox, "prepare the checkout", { argv: shell(`${OWN_AUTHOR}\n${WITHOUT_REFS}`), env });
  return unpack(sandbox, pack, { cwd: ".", commit, branch, defaultBranch, isSaved: false });
}

/** Checks out a submodule, on no branch; its parent is checked out already. */
export async function checkOutPart(
  sandbox: CommandSandbox,
  { submodule, parent }: Part,
  author: CheckoutOrder["author"],
  pack: Pack,
): Promise<number> {
  const { name, path, url, commit } = submodule;
  const names = { NAME: author.name, EMAIL: author.email };
  const env = { SUBMODULE: name, FOLDER: path, URL: url, ...names, FORMAT: formatName(commit) };
  await must(sandbox, `prepare the submodule ${path}`, { argv: shell(BEGIN_PART), env, ...inFolder(parent) });
  return unpack(sandbox, pack, {
    cwd: posix.join(parent, path),
    commit,
    branch: "",
    defaultBranch: "",
    isSaved: true,
  });
}

async function unpack(
  sandbox: CommandSandbox,
  pack: Pack,
  to: {
    readonly cwd: string;
    readonly commit: string;
    readonly branch: string;
    readonly defaultBranch: string;
    /** Whether its packs are part of a save, which takes no large files. */
    readonly isSaved: boolean;
  },
): Promise<number> {
  const folderOptions = inFolder(to.cwd);
  const index = { argv: ["git", "index-pack", "--stdin"], ...folderOptions };
  const bytes = await feedAll(sandbox, "unpack the repository", index, pack.bytes);
  const refs = pack.refs.map(([name, object]) => `update ${name} ${object}\n`).join("");
  await must(sandbox, "check the repository out", {
    argv: shell(END),
    env: {
      BRANCH: to.branch,
      COMMIT: to.commit,
      DEFAULT: to.defaultBranch,
      SHALLOW: pack.shallow.trim(),
      SPLIT: to.isSaved ? "yes" : "",
    },
    stdin: Buffer.from(refs),
    ...folderOptions,
  });
  return bytes;
}

/**
 * Puts Git LFS objects into a checkout's store, and replaces its pointers by their content.
 * @param folder of the checkout, from /workspace
 * @param frames for each object a line `oid size`, then its bytes
 * @throws BadConfiguration if the image has no git-lfs
 */
export async function putLfs(
  sandbox: CommandSandbox,
  folder: string,
  frames: AsyncIterable<Uint8Array>,
): Promise<void> {
  const folderOptions = inFolder(folder);
  if ((await must(sandbox, "look for git-lfs", { argv: shell(HAS_LFS) })) === "")
    throw fatal(
      "BadConfiguration",
      "The sandbox's image has no git-lfs, which git.lfs needs. Use an image that has it, such as the default one, or leave git.lfs out.",
    );
  const request = { ...program("LONGHAUL_LFS", lfsSource), ...folderOptions };
  await feedAll(sandbox, "store the files of Git LFS", request, frames);
  await must(sandbox, "check the files of Git LFS out", { argv: shell(LFS), ...folderOptions });
}

/** Empty for Git's own default. */
const formatName = (commit: string): string => (commit.length === 64 ? "sha256" : "");

const inFolder = (folder: string): { readonly cwd?: string } =>
  folder === "" || folder === "." ? {} : { cwd: folder };
