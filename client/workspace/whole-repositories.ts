/**
 * Repositories of a person's folder that are not all below it: a linked worktree, a repository in a separate folder, a submodule
 * that is opened alone, one that borrows objects from another, a partial clone. Only files are read; Git itself runs for borrowed
 * objects alone, by a command that starts nothing that the repository's configuration names.
 */
import { mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import type { WorkspaceFile } from "../../activities/store/workspace-pack.ts";
import { cutChars } from "../../activities/text/cut.ts";
import { usageError } from "../console/errors.ts";
import { LocalGitFailed, safeGit } from "./git-rules.ts";

/** What a linked worktree has in its own folder instead of the common one. */
const OF_WORKTREE =
  /^(HEAD|ORIG_HEAD|MERGE_\w+|CHERRY_PICK_HEAD|REVERT_HEAD|index|sharedindex\..*|logs|info)$/;

/** Where the content of a `.git` is, if it is not a folder there. */
export interface RepositoryFolders {
  /** The repository's folder: its references, objects, configuration. */
  readonly common: string;
  /** A linked worktree's own folder; the same otherwise. */
  readonly gitFolder: string;
}

/**
 * Reads where a `.git` that is a file or a link leads to.
 * @param root the folder that is copied in
 * @returns undefined if it is nowhere, or within the folder itself: then its files are copied anyway
 */
export function repositoryFolders(root: string, dotGit: string): RepositoryFolders | undefined {
  try {
    const isFile = statSync(dotGit).isFile();
    const gitFolderText = isFile ? /^gitdir: (.+)$/m.exec(readFileSync(dotGit, "utf8"))?.[1] : dotGit;
    if (gitFolderText === undefined) return undefined;
    const gitFolder = realpathSync(resolve(dirname(dotGit), gitFolderText.trim()));
    const common = realpathSync(resolve(gitFolder, textIn(join(gitFolder, "commondir"))?.trim() ?? "."));
    const isInside = !relative(realpathSync(root), common).startsWith("..");
    const isRepository = ["HEAD", "objects", "refs"].every((name) => statSync(join(common, name)));
    return isInside || !isRepository ? undefined : { common, gitFolder };
  } catch {
    return undefined;
  }
}

/** The names at the top of a repository's folder that are copied, with the places that they are read from. */
export function repositoryEntries({ common, gitFolder }: RepositoryFolders): ReadonlyMap<string, string> {
  const isLinked = common !== gitFolder;
  const paths = new Map<string, string>();
  for (const name of readdirSync(common))
    if (!isLinked || !/^(worktrees|modules|index|HEAD|ORIG_HEAD|MERGE_\w+)$/.test(name))
      paths.set(name, join(common, name));
  if (isLinked)
    for (const name of readdirSync(gitFolder))
      if (OF_WORKTREE.test(name)) paths.set(name, join(gitFolder, name));
  return paths;
}

export interface WholeRepositories {
  readonly files: readonly WorkspaceFile[];
  /** Notes for the person. */
  readonly notes: readonly string[];
}

/**
 * Makes each repository among the files whole: borrowed objects become its own, and one that cannot be whole is left out and said.
 * @param placeOf the folder on disk that a repository's files were read from
 * @throws ClientError (usage) if borrowed objects cannot be read
 */
export function withWholeRepositories(
  all: readonly WorkspaceFile[],
  placeOf: (repository: string) => string,
): WholeRepositories {
  let files = all;
  const notes: string[] = [];
  for (const repository of repositoriesWith(all, /\/objects\/pack\/pack-[0-9a-f]+\.promisor$/)) {
    files = files.filter(({ path }) => path !== repository && !path.startsWith(`${repository}/`));
    notes.push(
      `${repository} is a partial clone, which has only a part of its objects: its files go into the sandbox without its history.` +
        " For the history, clone it without --filter, or use --repo.",
    );
  }
  for (const repository of repositoriesWith(files, /\/objects\/info\/alternates$/)) {
    const objects = `${repository}/objects`;
    const pack = packAll(placeOf(repository), repository);
    files = [
      ...files.filter(({ path }) => !path.startsWith(`${objects}/`)),
      { kind: "folder", path: `${objects}/pack`, mode: 0o755 },
      ...pack.map(({ name, bytes }) => ({
        ...({ kind: "file", path: `${objects}/pack/${name}`, mode: 0o644, bytes } as const),
      })),
    ];
  }
  return { files, notes };
}

/** The folders in a `.git` that have a file which matches. */
function repositoriesWith(files: readonly WorkspaceFile[], pattern: RegExp): ReadonlySet<string> {
  const folders = files.flatMap(({ kind, path }) => {
    const at = kind === "file" && /(^|\/)\.git\//.test(path) ? path.search(pattern) : -1;
    return at < 0 ? [] : [path.slice(0, at)];
  });
  return new Set(folders);
}

/** All that a repository's references, logs and index lead to, as one pack: none of the rest of another that it borrows from. */
function packAll(
  folder: string,
  repository: string,
): { readonly name: string; readonly bytes: Uint8Array }[] {
  const packFolder = mkdtempSync(join(tmpdir(), "longhaul-pack-"));
  const args = [
    `--git-dir=${folder}`,
    "pack-objects",
    "--quiet",
    "--revs",
    "--all",
    "--reflog",
    "--indexed-objects",
  ];
  try {
    safeGit([...args, join(packFolder, "pack")]);
    return readdirSync(packFolder).map((name) => ({ name, bytes: readFileSync(join(packFolder, name)) }));
  } catch (error) {
    if (!(error instanceof LocalGitFailed)) throw error;
    throw usageError(
      `--workspace: the repository ${repository} borrows objects from another one, and they cannot be read: ${cutChars(error.message, 500)}`,
      "Make it whole with `git repack -a -d`, and remove .git/objects/info/alternates.",
    );
  } finally {
    rmSync(packFolder, { recursive: true, force: true });
  }
}

function textIn(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}
