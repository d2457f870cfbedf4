/** What a remote has: its default branch, and where a name points. */
import { repositoryAddress, tokenVariable } from "../config/git-settings.ts";
import type { GitAccess } from "./git-access.ts";
import { gitReason } from "./git-reason.ts";
import { runGit, type GitCall, type GitResult } from "./run-git.ts";
import type { RemoteTrouble } from "./trouble.ts";

/**
 * @param names patterns of `git ls-remote`
 * @returns the default branch's name, undefined for an empty repository; and commits (or tag objects) by full name,
 * `refs/heads/main`
 */
export async function lsRemote(
  access: GitAccess,
  url: string,
  names: readonly string[] = [],
  call: Pick<GitCall, "signal" | "timeoutMs"> = {},
) {
  const args = ["ls-remote", "--symref", "--", url, "HEAD", ...names];
  let result;
  try {
    result = await runGit(access, args, { ...call, url });
  } catch (error) {
    call.signal?.throwIfAborted();
    return { trouble: troubleOf(url, { err: (error as NodeJS.ErrnoException).code ?? String(error) }) };
  }
  if (result.code !== 0) return { trouble: troubleOf(url, result) };
  const lines = result.out.split("\n").map((line) => line.split("\t"));
  const head = lines.find(([what = "", name]) => name === "HEAD" && what.startsWith("ref: refs/heads/"));
  return {
    defaultBranch: head?.[0]?.slice("ref: refs/heads/".length),
    refs: new Map(
      lines.flatMap(([commit = "", name]) =>
        name !== undefined && /^[0-9a-f]{40,64}$/.test(commit) ? [[name, commit] as const] : [],
      ),
    ),
  };
}

/** What git's error about a remote means. Pure. */
export function troubleOf(url: string, { err, trouble }: Pick<GitResult, "err" | "trouble">): RemoteTrouble {
  if (trouble !== undefined) return trouble;
  const address = repositoryAddress(url);
  const host = "url" in address ? address.host : undefined;
  const place = host ?? url;
  if (err === "ENOENT")
    return {
      kind: "no-git",
      message: "Git is not installed, so no repository can be cloned.",
      fix: "Install it where the worker runs: apt-get install git",
    };
  // A client that does not check addresses may have stored it; git allows no other protocol here.
  if ("wrong" in address)
    return {
      kind: "unknown",
      message: address.wrong.replace(/\.$/, ""),
      fix: "Start the task again with another --repo.",
    };
  const said = gitReason(err);
  const token =
    "url" in address && address.kind === "ssh" ? "LONGHAUL_GIT_SSH_KEY_FILE" : "LONGHAUL_GIT_TOKEN";
  const variables =
    host === undefined || token !== "LONGHAUL_GIT_TOKEN" ? token : `${token} (or ${tokenVariable(host)})`;
  const fix = `Set ${variables} where the worker runs.`;
  if (
    /could not read (Username|Password)|Authentication failed|terminal prompts disabled|error: 40[13]|Permission denied|HTTP Basic: Access denied|Host key verification failed/i.test(
      err,
    )
  )
    return { kind: "credential", message: `${place} refused access to ${url}: ${said}`, fix };
  if (
    /not found|does not exist|does not appear to be a git repository|error: 404|dubious ownership/i.test(err)
  )
    return {
      kind: "unknown",
      message: `There is no repository ${url} that can be read: ${said}`,
      fix: host === undefined ? "Check the address." : `Check the address; for a private one: ${fix}`,
    };
  return {
    kind: "away",
    message: `${place} does not answer for ${url}: ${said}`,
    fix: "Check the address and the network.",
  };
}
