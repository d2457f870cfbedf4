/**
 * Checks, before anything starts, that a repository exists, grants access and has the requested references. Also reads its
 * devcontainer.json.
 */
import {
  isDelivered,
  toBranchName,
  noForge,
  parseForge,
  type SessionGit,
  repositoryAddress,
  tokenVariable,
} from "../../activities/config/git-settings.ts";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findForge } from "../../activities/forge/recognise.ts";
import { createGitAccess, type GitAccess } from "../../activities/git/git-access.ts";
import { toFormatOption } from "../../activities/git/mirror.ts";
import { git as runOwnGit } from "../../activities/git/run-git.ts";
import { refPatterns, fetchByName, isCommit, noStart, startOn } from "../../activities/git/start-point.ts";
import { branchInTheWay, inTheWay } from "../../activities/git/push.ts";
import { peekFile } from "../../activities/git/repository-files.ts";
import { trySigning } from "../../activities/git/signing-key.ts";
import { lsRemote } from "../../activities/git/remote.ts";
import { isSetupOff } from "../config/config.ts";
import { parseDevcontainer, PLACES, type Devcontainer } from "../config/devcontainer.ts";
import { missing, usageError } from "../console/errors.ts";
import type { Finding } from "./sandbox-check.ts";
import type { Environment } from "../../activities/config/providers.ts";

/** A missing credential is reported within 10 s. Source: requirement 1.2. */
const CHECK_MS = 8_000;

/**
 * Asks the remote, if this machine has the workers' credentials. If the workers run elsewhere, it is asked only if this
 * machine has a credential of its own; otherwise the run's first activity reports the problem.
 * @throws ClientError: missing for a remote that denies access, usage for an impossible request
 */
export async function checkRepository(
  git: SessionGit,
  flags: { readonly setup?: boolean | undefined },
  environment: Environment = process.env,
): Promise<void> {
  const access = createGitAccess(environment);
  const address = repositoryAddress(git.url);
  const host = "url" in address ? address.host : undefined;
  const isElsewhere = flags.setup === false || isSetupOff(environment);
  if (git.pr !== "none") await requireForge(git, isElsewhere);
  if (!isElsewhere) await requireSigning(git, access);
  if (isElsewhere && !access.hasToken(git.url)) return;
  if (git.pr !== "none" && host !== undefined)
    requireForgeToken(git.url, { ...flags, what: "Pull requests", without: "--pr" }, environment);
  const { ref, url } = git;
  const remote = await lsRemote(access, url, refPatterns(ref), { timeoutMs: CHECK_MS });
  if ("trouble" in remote) {
    const { message, fix } = remote.trouble;
    throw missing(`${message}. Nothing was started.`, fix);
  }
  const start = startOn(remote, ref);
  if (start === undefined || ("commit" in start && !(await mayHaveCommit(access, url, start.commit)))) {
    const { message, fix } = await noStart(access, url, remote, ref);
    throw usageError(message, fix);
  }
  const isOnBranch = "name" in start && start.name.startsWith("refs/heads/");
  if (git.pr !== "none" && remote.defaultBranch === undefined && !isOnBranch)
    throw usageError(
      `A pull request goes into the branch that the session starts from, or into the default branch, and ${url} has none of them here.`,
      "Choose a branch with --ref, or leave out --pr.",
    );
  if (git.push !== "never" && git.branch === remote.defaultBranch && !git.allowDefaultBranch)
    throw usageError(
      `${git.branch} is the default branch of ${git.url}, and nothing is pushed there.`,
      "Choose another --branch, or set git.allowDefaultBranch: true in your own file.",
    );
  if (!isDelivered(git)) return;
  const branch = toBranchName(git, "{id}");
  const other = branchInTheWay(branch, remote.refs.keys());
  if (other !== undefined)
    throw usageError(`${inTheWay(branch, other, git.url)}.`, "Choose another --branch.");
}

/** With the programs and the key of the worker, which is on this machine. @throws ClientError (missing) */
async function requireSigning(git: SessionGit, access: GitAccess): Promise<void> {
  const { sign } = git;
  if (sign === "none" || !isDelivered(git)) return;
  const tried = await trySigning(access.signing, sign);
  if ("trouble" in tried) throw missing(`${tried.trouble.message}. Nothing was started.`, tried.trouble.fix);
}

/** Of the worker's key, tried by signing with it. @returns undefined if none is configured: most workers have none */
export async function signingFinding(environment: Environment): Promise<Finding | undefined> {
  const { signing } = createGitAccess(environment);
  if (signing === undefined) return undefined;
  const tried = await trySigning(signing);
  if ("trouble" in tried) return { ok: false, found: tried.trouble.message, fix: tried.trouble.fix };
  return { ok: true, found: `${tried.about}, signs the same way each time` };
}

/**
 * Checks that there is a token for what is written on a forge, if this machine has the workers' credentials.
 * @param what needs it, in the plural; `without`: the flag that asks for it
 * @throws ClientError (missing)
 */
export function requireForgeToken(
  url: string,
  of: { readonly setup?: boolean | undefined; readonly what: string; readonly without: string },
  environment: Environment = process.env,
): void {
  const address = repositoryAddress(url);
  const host = "url" in address ? address.host : undefined;
  const access = createGitAccess(environment);
  const isElsewhere = of.setup === false || isSetupOff(environment);
  if (host === undefined || isElsewhere || access.hasToken(url)) return;
  throw missing(
    `${of.what} on ${host} need a token, and none is set. Nothing was started.`,
    `Set ${tokenVariable(host)}, or leave out ${of.without}.`,
  );
}

/**
 * What the host's name does not say, its server is asked, unless only the workers may reach it.
 * @throws ClientError (usage) if it is not known
 */
async function requireForge({ url, forge }: SessionGit, isElsewhere: boolean): Promise<void> {
  const forgePlace = isElsewhere ? parseForge(url, forge) : await findForge(url, forge);
  if (forgePlace !== undefined) return;
  throw usageError(
    noForge(url),
    "If it is on GitHub, GitLab, Gitea or Forgejo, set git.forge to github, gitlab, gitea or forgejo in your own file. To deliver only the branch: --pr none --push end",
  );
}

/** False only if the remote says that it does not have the commit; a part of a commit's name cannot be asked for. */
async function mayHaveCommit(access: GitAccess, url: string, commit: string): Promise<boolean> {
  if (!isCommit(commit)) return true;
  const folder = await mkdtemp(join(tmpdir(), "longhaul-commit-"));
  try {
    await runOwnGit(access, ["init", "--quiet", "--bare", ...toFormatOption(commit), folder]);
    const options = ["--depth=1", "--filter=tree:0"];
    const signal = AbortSignal.timeout(CHECK_MS);
    return await fetchByName(access, folder, { url, name: commit, signal, options });
  } catch {
    return true;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** @throws ClientError: missing for a remote that denies access, usage if there is no such file, or it is unusable */
export async function devcontainerOfRepository(
  repo: string,
  ref: string | undefined,
  environment: Environment = process.env,
): Promise<Devcontainer> {
  const address = repositoryAddress(repo);
  if ("wrong" in address) throw usageError(address.wrong);
  const file = await peekFile(createGitAccess(environment), address.url, { ref, paths: PLACES });
  if (file === undefined)
    throw usageError(
      `--devcontainer: ${address.url} has no ${PLACES.join(" and no ")}${ref === undefined ? "" : ` at ${ref}`}.`,
    );
  if ("trouble" in file)
    throw missing(
      `${file.trouble.message}. Nothing was started.`,
      `${file.trouble.fix} With --devcontainer this machine reads the repository too.`,
    );
  const folder = file.path.includes("/") ? ".devcontainer" : ".";
  return parseDevcontainer(file.text, file.path, { folder });
}
