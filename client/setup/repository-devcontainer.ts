/** Reads the devcontainer.json of a session's repository on this machine, before anything starts. */
import { repositoryAddress } from "../../activities/config/git-settings.ts";
import { gitAccessOf } from "../../activities/git/git-access.ts";
import { peekFile } from "../../activities/git/peek.ts";
import { devcontainerOf, PLACES, type Devcontainer } from "../config/devcontainer.ts";
import { missing, usageError } from "../console/errors.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** @throws ClientError: missing for a remote that denies access, usage if there is no such file, or it is unusable */
export async function devcontainerOfRepository(
  repo: string,
  ref: string | undefined,
  environment: Environment = process.env,
): Promise<Devcontainer> {
  const address = repositoryAddress(repo);
  if ("wrong" in address) throw usageError(address.wrong);
  const found = await peekFile(gitAccessOf(environment), address.url, { ref, paths: PLACES });
  if (found === undefined)
    throw usageError(
      `--devcontainer: ${address.url} has no ${PLACES.join(" and no ")}${ref === undefined ? "" : ` at ${ref}`}.`,
    );
  if ("trouble" in found)
    throw missing(
      `${found.trouble.message}. Nothing was started.`,
      `${found.trouble.fix} With --devcontainer this machine reads the repository too.`,
    );
  const folder = found.path.includes("/") ? ".devcontainer" : ".";
  return devcontainerOf(found.text, found.path, folder);
}
