/** What a remote has (its default branch, where a name points), why it cannot be used, and which are refused. */
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { repositoryAddress, tokenVariable, type RepositoryAddress } from "../config/git-settings.ts";
import {
  howToName,
  isBeside,
  isNamed,
  isSameServer,
  type NamedRepositories,
} from "../config/repository-place.ts";
import { isPublicAddress } from "../config/addresses.ts";
import type { GitAccess } from "./git-access.ts";
import { gitReason, kindOfTrouble } from "./git-words.ts";
import { runGit, type GitCall, type GitResult } from "./run-git.ts";
import { type RemoteTrouble, quoted } from "./trouble.ts";

export interface Remote {
  readonly defaultBranch: string | undefined;
  readonly refs: ReadonlyMap<string, string>;
}

/**
 * @param names patterns of `git ls-remote`
 * @returns the default branch's name, undefined for an empty repository; and commits (or tag objects) by full name,
 * `refs/heads/main`. `HEAD` is among them, unless it names a branch that is not there
 */
export async function lsRemote(
  access: GitAccess,
  url: string,
  names: readonly string[] = [],
  call: Pick<GitCall, "signal" | "timeoutMs"> = {},
): Promise<Remote | { readonly trouble: RemoteTrouble }> {
  const args = ["ls-remote", "--symref", "--", url, "HEAD", ...names];
  let result;
  try {
    result = await runGit(access, args, { ...call, url });
  } catch (error) {
    call.signal?.throwIfAborted();
    return { trouble: remoteTrouble(url, { err: (error as NodeJS.ErrnoException).code ?? String(error) }) };
  }
  if (result.code !== 0) return { trouble: remoteTrouble(url, result) };
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

/** What git's error about a remote means. */
export function remoteTrouble(
  url: string,
  { err, trouble }: Pick<GitResult, "err" | "trouble">,
): RemoteTrouble {
  if (trouble !== undefined) return trouble;
  const address = repositoryAddress(url);
  const host = "url" in address ? address.host : undefined;
  const hostOrUrl = host ?? url;
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
  const kind = kindOfTrouble(err);
  return {
    kind,
    ...SENTENCES[kind]({ url, host, hostOrUrl, gitOutput: gitReason(err), token: tokenFix(address) }),
  };
}

function tokenFix({ kind, host }: RepositoryAddress): string {
  const token = kind === "ssh" ? "LONGHAUL_GIT_SSH_KEY_FILE" : "LONGHAUL_GIT_TOKEN";
  const own = host === undefined || kind === "ssh" ? "" : ` (or ${tokenVariable(host)})`;
  return `Set ${token}${own} where the worker runs, or give the one that is set access.`;
}

/** By what ssh says, which asks for more than a key. */
const OF_KEYS: readonly (readonly [RegExp, string])[] = [
  [
    /Host key verification failed/i,
    "The server shows another host key than the worker knows. If that is right, remove the server's line from known_hosts in the worker's LONGHAUL_GIT_FOLDER.",
  ],
  [
    /Load key|too open|bad permissions/i,
    "Mend the file that LONGHAUL_GIT_SSH_KEY_FILE names where the worker runs: a private key without a passphrase, which only its owner may read.",
  ],
];

interface Said {
  readonly url: string;
  readonly host: string | undefined;
  readonly hostOrUrl: string;
  /** In Git's own words. */
  readonly gitOutput: string;
  readonly token: string;
}
type Sentence = (what: Said) => Pick<RemoteTrouble, "message" | "fix">;

const OF_REFUSALS: readonly (readonly [RegExp, string])[] = [
  [
    /certificate has expired|not yet valid/i,
    "Look at the dates of the server's certificate, and at the clock of the worker's machine.",
  ],
  [
    /certificate/i,
    "If an authority of your own signed the server's certificate, set NODE_EXTRA_CA_CERTS, where the worker runs, to a file with that authority's certificate.",
  ],
  [
    /dubious ownership|unsafe repository/i,
    "The repository is there, but another user of the worker's machine owns it, and Git takes it from its owner only: give it to the worker's user (chown -R), or let the worker run as its owner.",
  ],
];

const refused: Sentence = ({ url, gitOutput }) => ({
  message: `Git cannot use ${url}: ${gitOutput}`,
  fix:
    OF_REFUSALS.find(([pattern]) => pattern.test(gitOutput))?.[1] ??
    "It is not tried again, because waiting does not change that.",
});

const SENTENCES: Readonly<Record<RemoteTrouble["kind"], Sentence>> = {
  credential: ({ url, hostOrUrl, gitOutput, token }) => ({
    message: `${hostOrUrl} refused access to ${url}: ${gitOutput}`,
    fix: OF_KEYS.find(([pattern]) => pattern.test(gitOutput))?.[1] ?? token,
  }),
  unknown: ({ url, host, gitOutput, token }) => ({
    message: `There is no repository ${url} that can be read: ${gitOutput}`,
    fix: host === undefined ? "Check the address." : `Check the address; for a private one: ${token}`,
  }),
  away: ({ url, hostOrUrl, gitOutput }) => ({
    message: `${hostOrUrl} does not answer for ${url}: ${gitOutput}`,
    fix: "Check the address and the network.",
  }),
  disk: ({ url, gitOutput }) => ({
    message: `The worker's own disk cannot take its copy of ${url}: ${gitOutput}`,
    fix: "Make room where the worker's LONGHAUL_GIT_FOLDER is, or put that folder on a disk that can be written to.",
  }),
  memory: ({ url, gitOutput }) => ({
    message: `Git was killed, or had no memory or files left on the worker, while it used ${url}: ${gitOutput}`,
    fix: "It is tried again. If that does not help, give the worker's machine or container more memory, or fewer sessions at once.",
  }),
  ours: ({ url, gitOutput }) => ({
    message: `Our copy of ${url} on the worker cannot be used: ${gitOutput}`,
    fix: "It is made again. If that does not help, look at the worker's LONGHAUL_GIT_FOLDER: its rights and its disk.",
  }),
  refused,
  "no-git": refused,
};

/**
 * Checks an address that a repository names (a submodule, a store for LFS), and not the person: it may be no program, no folder of
 * the worker, no less secure protocol, no use of the worker's ssh key, and no address inside the worker's network.
 * Why the address is refused; undefined if it is accepted. A host in a private network is accepted if it is the repository's
 * own, or the person named the address.
 */
export async function refusedRemote(named: NamedRepositories, url: string): Promise<string | undefined> {
  const { url: base } = named;
  const [address, own] = [repositoryAddress(url), repositoryAddress(base)];
  if ("wrong" in address) return `${quoted(url)} is not an accepted address: ${address.wrong}`;
  if ("wrong" in own) return own.wrong;
  if (address.kind === "file") {
    if (own.kind !== "file") return `${quoted(url)} is a folder, but the repository's own address is not`;
    return isNamed(named, url) || isBeside(base, url)
      ? undefined
      : `${quoted(url)} is a folder elsewhere on the worker; ${howToName(url)}`;
  }
  if (address.kind === "http" && new URL(address.url).protocol === "http:" && !base.startsWith("http:"))
    return `${quoted(url)} is not encrypted, but the repository's own address is`;
  if (isNamed(named, url)) return undefined;
  if (address.kind === "ssh") return `the worker's ssh key is not used for ${quoted(url)}; ${howToName(url)}`;
  const host = address.host ?? "";
  if (isSameServer(base, url) || (await isPublicHost(host))) return undefined;
  return `${host} is in a private network; ${howToName(url)}`;
}

/** A name that does not resolve here is accepted: the proxy may resolve it, and otherwise git reports it. */
async function isPublicHost(host: string): Promise<boolean> {
  const literal = host.replace(/^\[|\]$/g, "");
  if (isIP(literal) !== 0) return isPublicAddress(literal);
  const addresses = await lookup(host, { all: true }).catch(() => []);
  return addresses.every(({ address }) => isPublicAddress(address));
}
