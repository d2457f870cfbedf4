/** What git may use on the worker: folder, credentials, proxies. The environment is handed in. */
import { join } from "node:path";
import { repositoryAddress, tokenVariable } from "../config/git-settings.ts";
import { createGitHubApp, gitHubAppSettings } from "./github-app.ts";

type Environment = Readonly<Record<string, string | undefined>>;

export interface GitAccess {
  /** Of our own repositories: mirrors and relays. */
  readonly folder: string;
  /**
   * The token for a repository's address, over HTTP or for its forge: that of its host alone, else one of the GitHub App, else
   * the one for all hosts; undefined where there is none.
   * @throws CredentialUnavailable where the GitHub App gets none
   */
  readonly tokenFor: (url: string, signal?: AbortSignal) => Promise<string | undefined>;
  /** Whether anything that gives a token for the address is configured. */
  readonly hasToken: (url: string) => boolean;
  /** Secrets that this process was given since it began: another list after each change. */
  readonly madeSecrets: () => readonly string[];
  readonly sshKeyFile: string | undefined;
  /** What git itself gets of the environment. */
  readonly environment: Readonly<Record<string, string>>;
}

const PASSED =
  /^(PATH|LANG|LC_[A-Z]+|TZ|TMPDIR|LD_LIBRARY_PATH|SSH_AUTH_SOCK|SSL_CERT_(FILE|DIR)|CURL_CA_BUNDLE|GIT_SSL_CAINFO|(https?|all|no)_proxy)$/i;

const NONE: readonly string[] = [];

/** @param now the wall clock, for tokens that expire */
export function gitAccessOf(environment: Environment, now: () => Date = () => new Date()): GitAccess {
  const tokens = new Map(
    Object.entries(environment).filter(([name, value]) => /^LONGHAUL_GIT_TOKEN/i.test(name) && value),
  );
  const settings = gitHubAppSettings(environment);
  const app = settings && createGitHubApp(settings, now);
  const sources = (url: string) => {
    const address = repositoryAddress(url);
    if ("wrong" in address || address.host === undefined) return undefined;
    const variable = tokenVariable(address.host);
    const own = [...tokens].find(([name]) => name.toUpperCase() === variable)?.[1];
    return { own, app: app?.covers(url) === true ? app : undefined, all: tokens.get("LONGHAUL_GIT_TOKEN") };
  };
  const data = environment["XDG_DATA_HOME"] || join(environment["HOME"] || "/tmp", ".local", "share");
  const passed = Object.entries(environment).filter(([name, value]) => PASSED.test(name) && value);
  return {
    folder: environment["LONGHAUL_GIT_FOLDER"] || join(data, "longhaul", "git"),
    async tokenFor(url, signal) {
      const from = sources(url);
      return from?.own ?? (await from?.app?.tokenFor(url, signal)) ?? from?.all;
    },
    hasToken: (url) => Object.values(sources(url) ?? {}).some((source) => source !== undefined),
    madeSecrets: () => app?.made() ?? NONE,
    sshKeyFile: environment["LONGHAUL_GIT_SSH_KEY_FILE"] || undefined,
    environment: Object.fromEntries(passed) as Record<string, string>,
  };
}
