/** Files of a commit: one of a remote, read before anything of it is cloned; the agent's instructions and skills, from the mirror. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, posix } from "node:path";
import type { RunConfig } from "../config/agent-config.ts";
import type { ForgePlace } from "../config/git-settings.ts";
import { isSkillFile } from "../config/skills.ts";
import { shorten } from "../text/cut.ts";
import type { GitAccess } from "./git-access.ts";
import { toFormatOption } from "./mirror.ts";
import { lsRemote, remoteTrouble } from "./remote.ts";
import { boundedFetch, git, GitFailed, runGit } from "./run-git.ts";
import { isCommit, remoteNames } from "./start-point.ts";
import type { RemoteTrouble } from "./trouble.ts";

/** Chosen: such a file is written by hand. */
const MAX_PEEKED_BYTES = 1024 * 1024;
/** Of all that is fetched for it: a server without filters sends every file of the commit. Chosen: most repositories' files are less. */
const MAX_FETCHED_BYTES = 512 * 1024 * 1024;
/** Chosen: a person waits for it. */
const PEEK_MS = 5 * 60_000;

interface Peek {
  /** Branch, tag, other reference or whole commit; undefined: the default branch. */
  readonly ref: string | undefined;
  readonly paths: readonly string[];
  readonly maxBytes?: number;
}

/**
 * The first of `paths` that a commit has. Fetches only the trees and that file if the server can do that, else all files.
 * @returns undefined if it has none of them
 */
export async function peekFile(
  access: GitAccess,
  url: string,
  { ref, paths, maxBytes = MAX_FETCHED_BYTES }: Peek,
): Promise<
  { readonly path: string; readonly text: string } | { readonly trouble: RemoteTrouble } | undefined
> {
  const cwd = await mkdtemp(join(tmpdir(), "longhaul-peek-"));
  try {
    const remote = await lsRemote(access, url);
    if ("trouble" in remote) return remote;
    await git(
      access,
      ["init", "--quiet", "--bare", ...toFormatOption(remote.refs.values().next().value), "."],
      {
        cwd,
      },
    );
    // Git fetches missing objects only from a remote that has a name.
    await git(access, ["remote", "add", "origin", url], { cwd });
    await git(access, ["config", "remote.origin.promisor", "true"], { cwd });
    const names = ref === undefined ? ["HEAD"] : [...remoteNames(ref), ...(isCommit(ref) ? [ref] : [])];
    const bounds = { cwd, url, maxBytes, timeoutMs: PEEK_MS };
    let fetched = { code: 1, out: "", err: "" };
    for (const name of names) {
      const args = ["fetch", "--quiet", "--no-tags", "--depth=1", "--filter=blob:none", "origin", name];
      fetched = await boundedFetch(access, ["-c", "fetch.fsckObjects=false", ...args], bounds);
      if (fetched.code === 0 || !/remote ref/.test(fetched.err)) break;
    }
    if (fetched.code !== 0) return { trouble: remoteTrouble(url, fetched) };
    const listed = await git(access, ["ls-tree", "-z", "--full-tree", "FETCH_HEAD", "--", ...paths], { cwd });
    for (const path of paths) {
      // A link may lead anywhere.
      const entry = listed.split("\0").find((line) => line.startsWith("100") && line.endsWith(`\t${path}`));
      const blob = entry?.split(/[ \t]/)[2];
      if (blob === undefined) continue;
      // Fetches it, if it is not there.
      const there = await boundedFetch(access, ["cat-file", "-e", blob], bounds);
      if (there.code !== 0) return { trouble: remoteTrouble(url, there) };
      if (Number(await git(access, ["cat-file", "-s", blob], { cwd })) > MAX_PEEKED_BYTES) continue;
      return { path, text: (await runGit(access, ["cat-file", "blob", blob], { cwd })).out };
    }
    return undefined;
  } catch (error) {
    if (!(error instanceof GitFailed) || error.result.trouble === undefined) throw error;
    return { trouble: error.result.trouble };
  } finally {
    await rm(cwd, { recursive: true, force: true });
  }
}

/** Larger ones are not treated as instructions. */
const MAX_FILE_BYTES = 1024 * 1024;
/** The most that a prompt may name. */
const MAX_SKILLS = 500;

/** A commit's instructions and skills for the agent, read from the worker's mirror. Instructions in the root, and skills: only plain files, since a link may lead anywhere. */
export async function projectFilesIn(
  access: GitAccess,
  mirror: string,
  commit: string,
  { instructions, skills }: Pick<RunConfig, "instructions" | "skills">,
) {
  const names = instructions.files;
  const listed = await git(
    access,
    ["ls-tree", "-r", "-l", "--full-tree", commit, "--", ...names, ...skills.paths],
    { cwd: mirror },
  );
  const files: { readonly kind: "file"; readonly path: string; readonly bytes: Uint8Array }[] = [];
  for (const [, object = "", size = "", path = ""] of listed.matchAll(
    /^100\d{3} blob ([0-9a-f]{40,64}) +(\d+)\t([^"\n].*)$/gm,
  )) {
    if (!names.includes(path) && !isSkillFile(path, skills)) continue;
    if (Number(size) > MAX_FILE_BYTES || files.length > MAX_SKILLS) continue;
    const text = await git(access, ["cat-file", "blob", object], { cwd: mirror });
    files.push({ kind: "file", path, bytes: new TextEncoder().encode(text) });
  }
  return files;
}

/** Of a template; what is longer is cut. Chosen: the longest that people fill in are some thousand characters. */
const MAX_TEMPLATE_CHARS = 8_000;
/** A larger one is not read: it is no template. */
const MAX_TEMPLATE_BYTES = 1024 * 1024;

/** Where forges look, in their order; then the only file of a folder of templates. Source: their documentation, Gitea 1.24's pull.go. */
const TEMPLATES: Readonly<Record<ForgePlace["kind"], readonly RegExp[]>> = {
  github: ["\\.github/", "", "docs/"].map(
    (folder) => new RegExp(`^${folder}pull_request_template\\.(md|txt)$`, "i"),
  ),
  gitlab: [/^\.gitlab\/merge_request_templates\/default\.md$/i],
  gitea: ["", "\\.gitea/", "\\.forgejo/", "\\.github/"].map(
    (folder) => new RegExp(`^${folder}pull_request_template\\.md$`, "i"),
  ),
};
const FOLDER = /^\d+ tree [0-9a-f]+\t((?:\.github|docs|\.gitea|\.forgejo|\.gitlab|pull_request_template))$/i;
const OF_SEVERAL = /^((\.github|docs|\.gitea|\.forgejo)\/)?pull_request_template\/[^/]+\.(md|txt)$/i;

/**
 * The repository's template for the text of a pull request, as its commit has it. A link is followed within the repository only.
 * @returns undefined if there is none, or several to choose from
 */
export async function pullRequestTemplate(
  access: GitAccess,
  mirror: string,
  commit: string,
  kind: ForgePlace["kind"],
): Promise<{ readonly path: string; readonly text: string } | undefined> {
  const call = { cwd: mirror };
  const top = (await git(access, ["ls-tree", "-z", commit], call)).split("\0");
  const folders = top.flatMap((line) => FOLDER.exec(line)?.[1] ?? []);
  const inside = ["ls-tree", "-z", "-r", "--full-tree", commit, "--", ...folders];
  const below = folders.length === 0 ? [] : (await git(access, inside, call)).split("\0");
  const entries = [...top, ...below].flatMap((line) => {
    const [, mode = "", object = "", path = ""] = /^(\d+) blob ([0-9a-f]+)\t(.*)$/s.exec(line) ?? [];
    return path === "" ? [] : [{ mode, object, path }];
  });
  const several = kind === "gitlab" ? [] : entries.filter(({ path }) => OF_SEVERAL.test(path));
  const named = TEMPLATES[kind].map((pattern) => entries.find(({ path }) => pattern.test(path)));
  const template =
    named.find((entry) => entry !== undefined) ?? (several.length === 1 ? several[0] : undefined);
  if (template === undefined) return undefined;
  const text = await plainText(access, mirror, { commit, ...template });
  return text === undefined || text.trim() === "" ? undefined : { path: template.path, text };
}

async function plainText(
  access: GitAccess,
  mirror: string,
  {
    commit,
    mode,
    object,
    path,
  }: { readonly commit: string; readonly mode: string; readonly object: string; readonly path: string },
): Promise<string | undefined> {
  const size = Number(await git(access, ["cat-file", "-s", object], { cwd: mirror }));
  if (size > MAX_TEMPLATE_BYTES) return undefined;
  const text = (await runGit(access, ["cat-file", "blob", object], { cwd: mirror })).out;
  if (mode.startsWith("100")) return shorten(text.replaceAll("\0", ""), MAX_TEMPLATE_CHARS);
  const to = posix.normalize(posix.join(posix.dirname(path), text));
  if (mode !== "120000" || text.startsWith("/") || to.startsWith("..")) return undefined;
  const listed = await git(access, ["ls-tree", "-z", "--full-tree", commit, "--", to], { cwd: mirror });
  const [, behind] = /^100\d{3} blob ([0-9a-f]+)\t/.exec(listed) ?? [];
  return behind === undefined
    ? undefined
    : plainText(access, mirror, { commit, mode: "100644", object: behind, path: to });
}
