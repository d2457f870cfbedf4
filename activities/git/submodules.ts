/** Reads a commit's `.gitmodules` and resolves relative addresses. Refuses what could do harm. */
import { repositoryAddress } from "../config/git-settings.ts";
import type { GitAccess } from "./git-access.ts";
import { git, runGit } from "./run-git.ts";
import type { StartPoint } from "./start-point.ts";
import { quoted } from "./trouble.ts";

/** A submodule that was fetched. */
export interface Part {
  readonly submodule: Submodule;
  /** Folder of the repository that contains it, from /workspace; empty for the session's own. */
  readonly parent: string;
  readonly mirror: string;
  readonly start: StartPoint;
}

export interface Submodule {
  /** Name of its repository below `.git/modules`. */
  readonly name: string;
  /** Path of its folder, from the repository's root. */
  readonly path: string;
  readonly url: string;
  readonly commit: string;
}

/**
 * The submodules of a commit that are to be checked out. Entries without a commit in the tree, commits without an entry and those
 * with `update = none` are none, as with Git.
 * @param folder a repository that has the commit
 * @param url its address
 * @throws GitFailed if the file cannot be read
 */
export async function submodulesIn(
  access: GitAccess,
  folder: string,
  commit: string,
  url: string,
): Promise<readonly Submodule[] | { readonly refused: string }> {
  const entries = await entriesIn(access, folder, commit);
  const wrong = [...entries.keys()].find((name) => !isSafePath(name));
  if (wrong !== undefined) return { refused: `.gitmodules has a submodule named ${quoted(wrong)}` };
  const links = await linksIn(access, folder, commit);
  const submodules: Submodule[] = [];
  for (const [name, { path, url: written, update }] of entries) {
    const linked = path === undefined ? undefined : links.get(path);
    if (path === undefined || linked === undefined || update === "none") continue;
    if (!isSafePath(path)) return { refused: `the submodule ${quoted(name)} has the path ${quoted(path)}` };
    const resolved = written === undefined ? undefined : resolveUrl(url, written);
    if (resolved === undefined)
      return {
        refused: `the submodule ${quoted(name)} has no usable address (${quoted(written ?? "")})`,
      };
    submodules.push({ name, path, url: resolved, commit: linked });
  }
  return submodules;
}

/** The addresses that a commit's `.gitmodules` names, resolved. @throws GitFailed if the file cannot be read */
export async function addressesIn(
  access: GitAccess,
  folder: string,
  commit: string,
  url: string,
): Promise<readonly string[]> {
  const entries = await entriesIn(access, folder, commit);
  return [...entries.values()].flatMap(({ url: written }) => {
    const resolved = written === undefined ? undefined : resolveUrl(url, written);
    return resolved === undefined ? [] : [resolved];
  });
}

async function entriesIn(access: GitAccess, folder: string, commit: string) {
  return readEntries(await configIn(access, folder, `${commit}:.gitmodules`));
}

/** A file in Git's own format, as `git config --null --list` prints it; empty if there is none. @throws GitFailed */
export async function configIn(access: GitAccess, folder: string, file: string): Promise<string> {
  if ((await runGit(access, ["cat-file", "-e", file], { cwd: folder })).code !== 0) return "";
  return git(access, ["config", "--blob", file, "--null", "--list"], { cwd: folder });
}

/** Commits that are submodules in a tree, by path. */
export async function linksIn(
  access: GitAccess,
  folder: string,
  commit: string,
): Promise<ReadonlyMap<string, string>> {
  const listed = await git(access, ["ls-tree", "-r", "-z", "--full-tree", commit], { cwd: folder });
  return new Map(
    [...listed.matchAll(/(?:^|\0)160000 commit ([0-9a-f]{40,64})\t([^\0]+)/g)].map(
      ([, linked = "", path = ""]) => [path, linked] as const,
    ),
  );
}

interface Entry {
  path?: string;
  url?: string;
  update?: string;
}

/** Parses the output of `git config --null --list`: the last of several values counts, as with Git. */
export function readEntries(listed: string): ReadonlyMap<string, Entry> {
  const entries = new Map<string, Entry>();
  for (const line of listed.split("\0")) {
    const end = line.indexOf("\n");
    const [key, value] = end < 0 ? [line, ""] : [line.slice(0, end), line.slice(end + 1)];
    const [, name, field] = /^submodule\.([^]+)\.([a-z]+)$/.exec(key) ?? [];
    if (name === undefined || (field !== "path" && field !== "url" && field !== "update")) continue;
    entries.set(name, { ...entries.get(name), [field]: value });
  }
  return entries;
}

/** Names and paths become folders: neither may lead out of the one they are in, nor into a repository's own. */
export function isSafePath(path: string): boolean {
  if (path === "" || path.length > 500 || /[\p{Cc}\\]/u.test(path)) return false;
  return path
    .split("/")
    .every(
      (part) => part !== "" && part !== "." && part !== ".." && !part.startsWith("-") && !isGitFolder(part),
    );
}

/** Also in spellings that some file systems take for `.git`. */
const isGitFolder = (part: string): boolean =>
  /^(\.git|git~1)[ .]*(::.*)?$/i.test(
    part.replaceAll(/[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/g, ""),
  );

/** An address that begins with `./` or `../` is relative to the repository's. @returns undefined if it leads above the host */
export function resolveUrl(repository: string, url: string): string | undefined {
  if (!/^\.\.?\//.test(url)) {
    // Without a user's name that is of no use.
    const address = repositoryAddress(url);
    return "wrong" in address ? url : address.url;
  }
  const [, hostPart = "", path = ""] =
    /^([a-z]+:\/\/[^/]*)(\/.*)$/i.exec(repository) ?? /^([^@/]+@[^:/]+:)(.*)$/.exec(repository) ?? [];
  if (hostPart === "") return undefined;
  const parts = path.replace(/^\/+|\/+$/g, "").split("/");
  for (const part of url.split("/")) {
    if (part === "." || part === "") continue;
    if (part !== "..") parts.push(part);
    else if (parts.pop() === undefined) return undefined;
  }
  if (parts.length === 0) return undefined;
  const root = path.startsWith("/") ? "/" : "";
  return `${hostPart}${root}${parts.join("/")}`;
}
