/** Checks a repository before anything starts: it exists, it grants access, and it has the requested references. */
import type { SessionGit } from "../../activities/config/git-settings.ts";
import { repositoryAddress, tokenVariable } from "../../activities/config/git-settings.ts";
import { gitAccessOf } from "../../activities/git/git-access.ts";
import { lsRemote } from "../../activities/git/remote.ts";
import { isSetupOff } from "../config/config.ts";
import { missing, usageError } from "../console/errors.ts";

/** A missing credential is reported within 10 s. Source: requirement 1.2. */
const CHECK_MS = 8_000;

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Asks the remote, if this machine has what the workers have. If they are elsewhere, so are their credentials: then only
 * with one of our own, and else the run's first activity finds out.
 * @throws ClientError: missing for a remote that denies access, usage for an impossible request
 */
export async function checkRepository(
  git: SessionGit,
  flags: { readonly setup?: boolean | undefined },
  environment: Environment = process.env,
): Promise<void> {
  const access = gitAccessOf(environment);
  const address = repositoryAddress(git.url);
  const host = "url" in address ? address.host : undefined;
  const isElsewhere = flags.setup === false || isSetupOff(environment);
  if (isElsewhere && !access.hasToken(git.url)) return;
  const found = await lsRemote(access, git.url, ["refs/heads/*", "refs/tags/*"], { timeoutMs: CHECK_MS });
  if ("trouble" in found) {
    const { message, fix } = found.trouble;
    const hint =
      host === undefined || fix.includes(tokenVariable(host)) ? fix : `${fix} (${tokenVariable(host)})`;
    throw missing(`${message}. Nothing was started.`, hint);
  }
  if (found.refs.size === 0)
    throw usageError(`The repository ${git.url} is empty: there is nothing to start from.`);
  const { ref } = git;
  const names = ref === undefined ? [] : [`refs/heads/${ref}`, `refs/tags/${ref}`];
  if (ref !== undefined && !/^[0-9a-f]{7,64}$/.test(ref) && !names.some((name) => found.refs.has(name)))
    throw usageError(`The repository ${git.url} has no branch or tag ${ref}.`);
  if (git.push !== "never" && git.branch === found.defaultBranch && !git.allowDefaultBranch)
    throw usageError(
      `${git.branch} is the default branch of ${git.url}, and nothing is pushed there.`,
      "Choose another --branch, or set git.allowDefaultBranch: true in your own file.",
    );
}
