/** What git may use on the worker: folder, credentials, proxies. Pure: the environment is handed in. */
import { join } from "node:path";
import { tokenVariable } from "../config/git-settings.ts";

type Environment = Readonly<Record<string, string | undefined>>;

export interface GitAccess {
  /** Of our own repositories: mirrors and relays. */
  readonly folder: string;
  /** Token of a host; undefined where there is none. */
  readonly tokenFor: (host: string) => string | undefined;
  readonly sshKeyFile: string | undefined;
  /** What git itself gets of the environment. */
  readonly environment: Readonly<Record<string, string>>;
}

const PASSED =
  /^(PATH|LANG|LC_[A-Z]+|TZ|TMPDIR|LD_LIBRARY_PATH|SSH_AUTH_SOCK|SSL_CERT_(FILE|DIR)|CURL_CA_BUNDLE|GIT_SSL_CAINFO|(https?|all|no)_proxy)$/i;

export function gitAccessOf(environment: Environment): GitAccess {
  const tokens = new Map(
    Object.entries(environment).filter(([name, value]) => /^LONGHAUL_GIT_TOKEN/i.test(name) && value),
  );
  const data = environment["XDG_DATA_HOME"] || join(environment["HOME"] || "/tmp", ".local", "share");
  const passed = Object.entries(environment).filter(([name, value]) => PASSED.test(name) && value);
  return {
    folder: environment["LONGHAUL_GIT_FOLDER"] || join(data, "longhaul", "git"),
    tokenFor: (host) => {
      const own = [...tokens].find(([name]) => name.toUpperCase() === tokenVariable(host));
      return own?.[1] ?? tokens.get("LONGHAUL_GIT_TOKEN");
    },
    sshKeyFile: environment["LONGHAUL_GIT_SSH_KEY_FILE"] || undefined,
    environment: Object.fromEntries(passed) as Record<string, string>,
  };
}
