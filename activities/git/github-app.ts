/**
 * Installation tokens of a GitHub App: each made for one repository, and kept in memory until shortly before it expires. Source:
 * docs.github.com/apps/creating-github-apps/authenticating-with-a-github-app.
 */
import { createPrivateKey, sign, type KeyObject } from "node:crypto";
import { readFileSync } from "node:fs";
import {
  parseForge,
  type ForgePlace,
  repositoryAddress,
  tokenVariable,
  usualHost,
} from "../config/git-settings.ts";
import { ForgeRefusal } from "../forge/calls.ts";
import { installationToken } from "../forge/github.ts";
import { CredentialUnavailable } from "./trouble.ts";

export interface GitHubAppSettings {
  /** The App's number, or its client id. */
  readonly id: string;
  /** Its private key in PEM. Read again for each token, so that a new key takes effect at once. */
  readonly keyFile: string;
  /** Origin of the App's GitHub: what the App signs is sent nowhere else. */
  readonly url: string;
}

/** How long a kept token must still be valid: a push may take a while. GitHub's tokens are valid for an hour. */
const SPARE_MS = 5 * 60_000;
/** GitHub refuses a signature that is valid for more than 10 minutes, or that lies in its future. */
const SIGNED_S = { past: 60, future: 8 * 60 } as const;
/** The newest tokens of all repositories. Chosen: each is valid for at most an hour. */
const MAX_MASKED = 1_000;

interface Token {
  readonly value: string;
  readonly expiresAtMs: number;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** @returns undefined if no variable names an App */
export function gitHubAppSettings(environment: Environment): GitHubAppSettings | undefined {
  const id = environment["LONGHAUL_GITHUB_APP_ID"]?.trim() ?? "";
  const keyFile = environment["LONGHAUL_GITHUB_APP_KEY_FILE"] ?? "";
  if (id === "" && keyFile === "") return undefined;
  return { id, keyFile, url: environment["LONGHAUL_GITHUB_APP_URL"] || "https://github.com" };
}

/** What is wrong with the App's variables or key, checked without a request. */
export function gitHubAppTrouble(settings: GitHubAppSettings): CredentialUnavailable | undefined {
  try {
    readApp(settings);
    return undefined;
  } catch (error) {
    if (error instanceof CredentialUnavailable) return error;
    throw error;
  }
}

/** @param now the wall clock: GitHub compares the times of a signature with its own */
export function createGitHubApp(settings: GitHubAppSettings, now: () => Date) {
  let tokens = new Map<string, Token>();
  let newest: readonly string[] = [];
  const pendingTokens = new Map<string, Promise<Token>>();

  function keep(project: string, token: Token): void {
    const time = now().getTime();
    tokens = new Map([...tokens].filter(([, { expiresAtMs }]) => expiresAtMs > time)).set(project, token);
    newest = [...newest.slice(1 - MAX_MASKED), token.value];
  }

  async function make(forge: ForgePlace, signal: AbortSignal): Promise<Token> {
    const { id, key } = readApp(settings);
    const call = { forge, token: signed(id, key, now()), signal };
    try {
      return await installationToken(call);
    } catch (error) {
      if (!(error instanceof ForgeRefusal)) throw error;
      throw refused(settings, forge, error);
    }
  }

  return {
    /** Whether the App may have a token for the repository at this address. */
    covers: (url: string): boolean => placeIn(settings, url) !== undefined,
    /** The newest tokens, for the sanitizer. A new list after each change. */
    made: (): readonly string[] => newest,
    /** @throws CredentialUnavailable */
    async tokenFor(url: string, signal: AbortSignal = new AbortController().signal): Promise<string> {
      const forge = placeIn(settings, url);
      if (forge === undefined) throw new Error(`The GitHub App is not for ${url}.`);
      const { project } = forge;
      const cached = tokens.get(project);
      if (cached !== undefined && cached.expiresAtMs - now().getTime() > SPARE_MS) return cached.value;
      // Concurrent callers share one request, unless its first caller was stopped.
      const other = pendingTokens.get(project);
      const theirs = other && (await other.catch(() => undefined));
      if (theirs !== undefined) return theirs.value;
      signal.throwIfAborted();
      const mine = make(forge, signal);
      pendingTokens.set(project, mine);
      try {
        const token = await mine;
        keep(project, token);
        return token.value;
      } finally {
        if (pendingTokens.get(project) === mine) pendingTokens.delete(project);
      }
    },
  };
}

/** The repository on the App's own GitHub; undefined for every other address. */
function placeIn({ url: own }: GitHubAppSettings, url: string): ForgePlace | undefined {
  const address = repositoryAddress(url);
  const server = URL.parse(own);
  if ("wrong" in address || server === null) return undefined;
  const isSame =
    address.kind === "http"
      ? new URL(address.url).origin === server.origin
      : usualHost(address.host ?? "") === server.hostname;
  const project = isSame ? parseForge(url, "github")?.project : undefined;
  if (project === undefined || !/^[\w.-]+\/[\w.-]+$/.test(project)) return undefined;
  return parseForge(`${server.origin}/${project}`, "github");
}

function readApp({ id, keyFile }: GitHubAppSettings): { readonly id: string; readonly key: KeyObject } {
  if (id === "" || keyFile === "")
    throw unusable(
      `A GitHub App needs both LONGHAUL_GITHUB_APP_ID and LONGHAUL_GITHUB_APP_KEY_FILE; ${id === "" ? "LONGHAUL_GITHUB_APP_ID" : "LONGHAUL_GITHUB_APP_KEY_FILE"} is not set`,
    );
  let key: KeyObject;
  try {
    key = createPrivateKey(readFileSync(keyFile, "utf8"));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const why =
      code === undefined || code.startsWith("ERR_")
        ? "is not a private key in PEM"
        : `cannot be read (${code})`;
    throw unusable(`LONGHAUL_GITHUB_APP_KEY_FILE (${keyFile}) ${why}`);
  }
  if (key.asymmetricKeyType !== "rsa")
    throw unusable(`LONGHAUL_GITHUB_APP_KEY_FILE (${keyFile}) is not an RSA key, as GitHub's keys are`);
  return { id, key };
}

function unusable(message: string): CredentialUnavailable {
  const fix =
    "Set both where the worker runs: the App's ID, and a private key (.pem) from its settings page.";
  return new CredentialUnavailable({ kind: "credential", message, fix });
}

/** RS256, by RFC 7519. */
function signed(id: string, key: KeyObject, now: Date): string {
  const seconds = Math.floor(now.getTime() / 1_000);
  const claims = { iat: seconds - SIGNED_S.past, exp: seconds + SIGNED_S.future, iss: id };
  const [head, body] = [{ alg: "RS256", typ: "JWT" }, claims].map((part) =>
    Buffer.from(JSON.stringify(part)).toString("base64url"),
  );
  const signature = sign("RSA-SHA256", Buffer.from(`${head}.${body}`), key).toString("base64url");
  return `${head}.${body}.${signature}`;
}

function refused(
  { id, url }: GitHubAppSettings,
  { project }: ForgePlace,
  error: ForgeRefusal,
): CredentialUnavailable {
  const app = `The GitHub App ${id}`;
  const instead = `or set ${tokenVariable(new URL(url).hostname)}`;
  if (error.isPassing)
    return new CredentialUnavailable({
      kind: "away",
      message: `${app} could not get a token for ${project}: ${error.message}`,
      fix: "Check the network.",
    });
  const [message, fix] =
    error.status === 401
      ? [
          `${app} is not recognised: ${error.message}`,
          "Check that the key of LONGHAUL_GITHUB_APP_KEY_FILE is this App's, and the worker's clock",
        ]
      : [
          `${app} has no access to ${project}: ${error.message}`,
          "Install it for that repository, on its settings page under Install App",
        ];
  return new CredentialUnavailable({
    kind: "credential",
    message,
    fix: `${fix}, ${instead} where the worker runs.`,
  });
}
