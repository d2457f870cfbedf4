/** Checks a repository out into the sandbox's /workspace, with its submodules and the content of its Git LFS files. */
import { posix } from "node:path";
import { fatal } from "../contract/failures.ts";
import { lfsSource } from "../sandbox/agent/sources.ts";
import type { Part } from "./submodules.ts";
import { feedAll, must, shell } from "./sandbox-command.ts";
import { program, type CommandSandbox } from "../sandbox/own-command.ts";
import type { Pack } from "./start-point.ts";

/** Small enough for a checkpoint, which leaves out files larger than 64 MiB. */
const MAX_PACK_MIB = 48;

export interface Checkout {
  readonly url: string;
  readonly branch: string;
  readonly commit: string;
  readonly defaultBranch: string | undefined;
  readonly author: { readonly name: string; readonly email: string };
}

/** Every checkout's settings. `lfs.skipdownloaderrors`: an old commit's file stays a pointer instead of failing. */
const SETTINGS = `git config user.name "$NAME"
git config user.email "$EMAIL"
git remote add origin "$URL"
git config lfs.skipdownloaderrors true
git config pack.packSizeLimit ${MAX_PACK_MIB}m`;

const BEGIN = `find . -mindepth 1 -delete
git init -q \${FORMAT:+--object-format="$FORMAT"} -b "$BRANCH" .
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

const END = `own=$(git rev-parse --git-dir)
if [ -n "$SHALLOW" ]; then printf '%s\\n' "$SHALLOW" > "$own/shallow"; fi
git update-ref --stdin
if [ -n "$DEFAULT" ] && git rev-parse -q --verify "refs/remotes/origin/$DEFAULT" >/dev/null
then git symbolic-ref refs/remotes/origin/HEAD "refs/remotes/origin/$DEFAULT"; fi
if [ -n "$(find "$own/objects/pack" -name '*.pack' -size +60M)" ]; then git repack -adq; fi
if [ -n "$BRANCH" ]; then git checkout -q -B "$BRANCH" "$COMMIT"; else git checkout -q --detach "$COMMIT"; fi`;

const HAS_LFS = `if command -v git-lfs >/dev/null; then echo yes; fi`;

/** Replaces pointers by files; installs the filter if the image has git-lfs without it. */
const LFS = `git config --get filter.lfs.process >/dev/null || git lfs install --local --skip-repo >/dev/null
git lfs checkout >/dev/null`;

/**
 * Empties /workspace and makes it a checkout on the session's branch. @returns how many bytes the pack had
 * @throws SandboxUnavailable (retryable), SandboxLost
 */
export async function checkOut(sandbox: CommandSandbox, checkout: Checkout, pack: Pack): Promise<number> {
  const { branch, url, author, commit, defaultBranch = "" } = checkout;
  const env = {
    BRANCH: branch,
    URL: url,
    NAME: author.name,
    EMAIL: author.email,
    FORMAT: formatName(commit),
  };
  await must(sandbox, "prepare the checkout", { argv: shell(BEGIN), env });
  return unpack(sandbox, pack, { cwd: ".", commit, branch, defaultBranch });
}

/** Checks out a submodule, on no branch; its parent is checked out already. */
export async function checkOutPart(
  sandbox: CommandSandbox,
  { submodule, parent }: Part,
  author: Checkout["author"],
  pack: Pack,
): Promise<number> {
  const { name, path, url, commit } = submodule;
  const names = { NAME: author.name, EMAIL: author.email };
  const env = { SUBMODULE: name, FOLDER: path, URL: url, ...names, FORMAT: formatName(commit) };
  await must(sandbox, `prepare the submodule ${path}`, { argv: shell(BEGIN_PART), env, ...inFolder(parent) });
  return unpack(sandbox, pack, { cwd: posix.join(parent, path), commit, branch: "", defaultBranch: "" });
}

async function unpack(
  sandbox: CommandSandbox,
  pack: Pack,
  to: {
    readonly cwd: string;
    readonly commit: string;
    readonly branch: string;
    readonly defaultBranch: string;
  },
): Promise<number> {
  const place = inFolder(to.cwd);
  const index = { argv: ["git", "index-pack", "--stdin"], ...place };
  const bytes = await feedAll(sandbox, "unpack the repository", index, pack.bytes);
  const refs = pack.refs.map(([name, object]) => `update ${name} ${object}\n`).join("");
  await must(sandbox, "check the repository out", {
    argv: shell(END),
    env: { BRANCH: to.branch, COMMIT: to.commit, DEFAULT: to.defaultBranch, SHALLOW: pack.shallow.trim() },
    stdin: Buffer.from(refs),
    ...place,
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
  const place = inFolder(folder);
  if ((await must(sandbox, "look for git-lfs", { argv: shell(HAS_LFS) })) === "")
    throw fatal(
      "BadConfiguration",
      "The sandbox's image has no git-lfs, which git.lfs needs. Use an image that has it, such as the default one, or leave git.lfs out.",
    );
  const order = { ...program("LONGHAUL_LFS", lfsSource), ...place };
  await feedAll(sandbox, "store the files of Git LFS", order, frames);
  await must(sandbox, "check the files of Git LFS out", { argv: shell(LFS), ...place });
}

/** Empty for Git's own default. */
const formatName = (commit: string): string => (commit.length === 64 ? "sha256" : "");

const inFolder = (folder: string): { readonly cwd?: string } =>
  folder === "" || folder === "." ? {} : { cwd: folder };
