/** What git may use on the worker: folder, credentials, proxies. The environment is handed in. */
import { join } from "node:path";
import { repositoryAddress, tokenVariable } from "../config/git-settings.ts";
import { isNamed, isSameServer, type NamedRepositories } from "../config/repository-place.ts";
import { createTrust } from "../process/authorities.ts";
import { createGitHubApp, gitHubAppSettings } from "./github-app.ts";
import { signingKeyIn, type SigningKey } from "./signing-key.ts";

type Environment = Readonly<Record<string, string | undefined>>;

export interface GitAccess {
  /** Folder of our own repositories: mirrors and relays. */
  readonly folder: string;
  /**
   * The token for a repository's address, over HTTP or for its forge: the one for its host, else one of the GitHub App, else
   * the one for all hosts; undefined if there is none.
   * @throws CredentialUnavailable if the GitHub App cannot get one
   */
  readonly tokenFor: (url: string, signal?: AbortSignal) => Promise<string | undefined>;
  /**
   * The access to what a repository names (submodules, a store for LFS): credentials are only for what the person named, and only
   * the repository's own server gets the token for all hosts.
   */
  readonly limitedTo: (named: NamedRepositories) => GitAccess;
  /** Whether credentials may be used for the address. */
  readonly opens: (url: string) => boolean;
  /** Whether the address is on the server that the person named; false for any other server that a repository names. */
  readonly isOwn: (url: string) => boolean;
  /** Whether a token for the address, or something that gets one, is configured. */
  readonly hasToken: (url: string) => boolean;
  /** Tokens that this process has got so far; a new list after each change. */
  readonly madeSecrets: () => readonly string[];
  readonly sshKeyFile: string | undefined;
  /** The key that signs commits; undefined if there is none. */
  readonly signing: SigningKey | undefined;
  /** The variables that git itself gets. */
  readonly environment: Readonly<Record<string, string>>;
  /** Those of them that say which certificate authorities it trusts. @throws Error that names an unusable variable */
  readonly trust: () => Readonly<Record<string, string>>;
}

const PASSED =
  /^(PATH|LANG|LC_[A-Z]+|TZ|TMPDIR|LD_LIBRARY_PATH|SSH_AUTH_SOCK|SSL_CERT_(FILE|DIR)|CURL_CA_BUNDLE|GIT_SSL_CAINFO|(https?|all|no)_proxy)$/i;

const NONE: readonly string[] = [];

/** @param now the wall clock, for tokens that expire */
export function createGitAccess(environment: Environment, now: () => Date = () => new Date()): GitAccess {
  const tokens = new Map(
    Object.entries(environment).filter(([name, value]) => /^LONGHAUL_GIT_TOKEN/i.test(name) && value),
  );
  const settings = gitHubAppSettings(environment);
  const app = settings && createGitHubApp(settings, now);
  const sources = (url: string, { isOwn, opens }: Pick<GitAccess, "isOwn" | "opens">) => {
    const address = repositoryAddress(url);
    if ("wrong" in address || address.host === undefined || !opens(url)) return undefined;
    const variable = tokenVariable(address.host);
    const own = [...tokens].find(([name]) => name.toUpperCase() === variable)?.[1];
    return {
      own,
      app: app?.covers(url) === true ? app : undefined,
      all: isOwn(url) ? tokens.get("LONGHAUL_GIT_TOKEN") : undefined,
    };
  };
  const data = environment["XDG_DATA_HOME"] || join(environment["HOME"] || "/tmp", ".local", "share");
  const passed = Object.entries(environment).filter(([name, value]) => PASSED.test(name) && value);
  const variables = Object.fromEntries(passed) as Record<string, string>;
  const folder = environment["LONGHAUL_GIT_FOLDER"] || join(data, "longhaul", "git");
  const trust = createTrust(environment, folder);
  const accessWhere = (limits: Pick<GitAccess, "isOwn" | "opens">): GitAccess => ({
    ...limits,
    folder,
    trust,
    async tokenFor(url, signal) {
      const from = sources(url, limits);
      return from?.own ?? (await from?.app?.tokenFor(url, signal)) ?? from?.all;
    },
    limitedTo: (named) =>
      accessWhere({
        isOwn: (url) => limits.isOwn(url) && isSameServer(named.url, url),
        opens: (url) => limits.opens(url) && isNamed(named, url),
      }),
    hasToken: (url) => Object.values(sources(url, limits) ?? {}).some((source) => source !== undefined),
    madeSecrets: () => app?.made() ?? NONE,
    signing: signingKeyIn(environment, variables),
    sshKeyFile: environment["LONGHAUL_GIT_SSH_KEY_FILE"] || undefined,
    environment: variables,
  });
  return accessWhere({ isOwn: () => true, opens: () => true });
}
