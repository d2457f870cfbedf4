/**
 * Git on the worker. It runs only in our own repositories and with our own configuration, so that a workspace's settings never
 * reach it. A credential is sent only to its own host, and is in no file and no argument.
 */
import { execFile, type ExecFileException } from "node:child_process";
import { readdir, rm, stat, statfs } from "node:fs/promises";
import { join } from "node:path";
import { pipeline, Readable } from "node:stream";
import { repositoryAddress } from "../config/git-settings.ts";
import { passes } from "../contract/errors.ts";
import type { GitAccess } from "./git-access.ts";
import { gitReason } from "./git-words.ts";
import { CredentialUnavailable, type RemoteTrouble } from "./trouble.ts";

export interface GitCall {
  /** The repository; default none. */
  readonly cwd?: string;
  /** The remote that git contacts: it gets that remote's credential. */
  readonly url?: string;
  readonly input?: string | Uint8Array | Readable;
  /** `latin1`: what git writes is one byte a character. */
  readonly encoding?: "utf8" | "latin1";
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs?: number;
}

export interface GitResult {
  readonly code: number;
  readonly out: string;
  readonly err: string;
  /** Set if git was not called because a configured credential is not available. */
  readonly trouble?: RemoteTrouble;
}

/** Large repositories have long lists of references. */
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;
/** Chosen: a first clone of a monorepo takes long, and its progress is not followed. */
const TIMEOUT_MS = 30 * 60_000;

/** The configuration of every call of git. */
const SETTINGS: readonly (readonly [string, string])[] = [
  ["core.hooksPath", "/dev/null"],
  ["core.fsmonitor", "false"],
  ["core.askPass", ""],
  ["credential.helper", ""],
  ["credential.interactive", "false"],
  ["gc.auto", "0"],
  ["maintenance.auto", "false"],
  ["fetch.fsckObjects", "true"],
  ["fetch.recurseSubmodules", "false"],
  ["protocol.allow", "never"],
  ["protocol.https.allow", "always"],
  ["protocol.http.allow", "always"],
  ["protocol.ssh.allow", "always"],
  ["protocol.file.allow", "always"],
  // Abandons a silent remote: less than 1 byte a second for 60 s.
  ["http.lowSpeedLimit", "1"],
  ["http.lowSpeedTime", "60"],
];

/** For a server that a repository named: its redirect would lead to an address that was not checked. */
const NAMED_SETTINGS = [["http.followRedirects", "false"]] as const;

/** @throws Error if git is not installed, or was stopped */
export async function runGit(
  access: GitAccess,
  args: readonly string[],
  call: GitCall = {},
): Promise<GitResult> {
  const { cwd, input, signal, timeoutMs = TIMEOUT_MS, encoding = "utf8" } = call;
  let credential: Credential | undefined;
  try {
    credential = call.url === undefined ? undefined : await credentialFor(access, call.url, signal);
  } catch (error) {
    if (!(error instanceof CredentialUnavailable)) throw error;
    return { code: 128, out: "", err: error.message, trouble: error.trouble };
  }
  const options = {
    env: {
      ...gitEnvironment(access, credential, isNamed(access, call.url) ? NAMED_SETTINGS : []),
      ...(call.url?.startsWith("https:") === true ? access.trust() : {}),
    },
    encoding,
    maxBuffer: MAX_OUTPUT_BYTES,
    timeout: timeoutMs,
    cwd,
    signal,
  };
  return new Promise((resolve, reject) => {
    const child = execFile("git", [...args], options, (error: ExecFileException | null, out, err) => {
      if (error === null) resolve({ code: 0, out, err });
      else if (typeof error.code === "number") resolve({ code: error.code, out, err });
      else if (error.killed === true && signal?.aborted !== true)
        resolve({ code: 124, out, err: `${err}\ngit ${args[0]} took longer than ${timeoutMs / 1000} s` });
      else if (error.code === "ERR_CHILD_PROCESS_STDIO_MAXBUFFER")
        resolve({
          code: 125,
          out: "",
          err: `fatal: git ${args[0]} says more than ${MAX_OUTPUT_BYTES >> 20} MiB`,
        });
      // By the system, as where memory is short.
      else if (typeof error.signal === "string" && signal?.aborted !== true)
        resolve({ code: 128, out, err: `${err}\nfatal: git ${args[0]} died of signal ${error.signal}` });
      else reject(error);
    });
    child.stdin?.on("error", () => undefined);
    if (!(input instanceof Readable)) child.stdin?.end(input);
    else if (child.stdin !== null) pipeline(input, child.stdin, () => undefined);
  });
}

/** @returns what it wrote, without its last line end. @throws GitFailed if it ends with another code than 0 */
export async function git(access: GitAccess, args: readonly string[], call: GitCall = {}): Promise<string> {
  const result = await runGit(access, args, call);
  if (result.code !== 0) throw new GitFailed(args, result);
  return result.out.replace(/\n$/, "");
}

export class GitFailed extends Error {
  override readonly name = "GitFailed";
  readonly result: GitResult;
  /** It worked on this worker's own copy, which another worker does not share. */
  readonly isPassing = passes.git("ours");

  constructor(args: readonly string[], result: GitResult) {
    super(`git ${args.find((arg) => !arg.startsWith("-")) ?? ""}: ${gitReason(result.err)}`);
    this.result = result;
  }
}

/** The credential that git gives one server. */
export interface Credential {
  readonly origin: string;
  readonly user: string;
  readonly password: string;
}

/** @returns undefined if the address needs no credential, or there is none. @throws CredentialUnavailable */
export async function credentialFor(
  access: GitAccess,
  url: string,
  signal?: AbortSignal,
): Promise<Credential | undefined> {
  const address = repositoryAddress(url);
  if ("wrong" in address || address.kind !== "http") return undefined;
  const token = await access.tokenFor(url, signal);
  if (token === undefined) return undefined;
  const colon = token.indexOf(":");
  const user = colon > 0 ? token.slice(0, colon) : "x-access-token";
  return { origin: new URL(url).origin, user, password: token.slice(colon > 0 ? colon + 1 : 0) };
}

/** Whether a repository, and not the person, named this server. */
const isNamed = (access: GitAccess, url: string | undefined): boolean =>
  url !== undefined && !access.isOwn(url);

export function gitEnvironment(
  access: GitAccess,
  credential?: Credential,
  more: readonly (readonly [string, string])[] = [],
): NodeJS.ProcessEnv {
  const settings = [...SETTINGS, ...more];
  const secret: Record<string, string> = {};
  if (credential !== undefined) {
    secret["LONGHAUL_GIT_USER"] = credential.user;
    secret["LONGHAUL_GIT_PASSWORD"] = credential.password;
    settings.push([
      `credential.${credential.origin}.helper`,
      '!f() { test "$1" = get && printf "username=%s\\npassword=%s\\n" "$LONGHAUL_GIT_USER" "$LONGHAUL_GIT_PASSWORD"; }; f',
    ]);
  }
  return {
    ...access.environment,
    ...secret,
    // No `.netrc` and no configuration of the worker's own user.
    HOME: "/nonexistent",
    LC_ALL: "C.UTF-8",
    LANGUAGE: "",
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_CONFIG_GLOBAL: "/dev/null",
    GIT_ATTR_NOSYSTEM: "1",
    GIT_TERMINAL_PROMPT: "0",
    GIT_SSH_COMMAND: sshCommand(access),
    GIT_CONFIG_COUNT: String(settings.length),
    ...Object.fromEntries(
      settings.flatMap(([key, value], index) => [
        [`GIT_CONFIG_KEY_${index}`, key],
        [`GIT_CONFIG_VALUE_${index}`, value],
      ]),
    ),
  };
}

/** One word of a shell command. */
export const shellQuoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

export function sshCommand({ folder, sshKeyFile }: GitAccess): string {
  const key = sshKeyFile === undefined ? "" : ` -i ${shellQuoted(sshKeyFile)} -o IdentitiesOnly=yes`;
  return `ssh -F /dev/null -o BatchMode=yes -o ConnectTimeout=10 -o StrictHostKeyChecking=accept-new -o UserKnownHostsFile=${shellQuoted(`${folder}/known_hosts`)}${key}`;
}

/** How often the size is looked at. Chosen: a disk takes some hundred MB in that time. */
const LOOK_MS = 500;
/** Chosen: a first clone of a monorepo takes long. */
const FETCH_MS = 30 * 60_000;

export interface FetchCall {
  /** Our own repository, into which Git fetches. */
  readonly cwd: string;
  readonly url: string;
  readonly signal?: AbortSignal | undefined;
  /** At most half of what is free on the disk, which all sessions share. */
  readonly maxBytes?: number | undefined;
  readonly timeoutMs?: number | undefined;
}

/**
 * @returns how Git ended
 * @throws GitFailed, with its trouble, if what it fetches is too large or takes too long: nothing of it is kept
 */
export async function boundedFetch(
  access: GitAccess,
  args: readonly string[],
  { cwd, url, signal, timeoutMs = FETCH_MS, maxBytes }: FetchCall,
): Promise<GitResult> {
  const packs = join(cwd, "objects", "pack");
  const limit = Math.min(maxBytes ?? Number.POSITIVE_INFINITY, await halfOfFree(cwd));
  const before = await sizeOf(packs);
  const tooLarge = new AbortController();
  let looking: Promise<void> = Promise.resolve();
  const timer = setInterval(() => {
    looking = sizeOf(packs).then((bytes) => {
      if (bytes - before > limit) tooLarge.abort();
    });
  }, LOOK_MS);
  try {
    const both = signal === undefined ? tooLarge.signal : AbortSignal.any([signal, tooLarge.signal]);
    const result = await runGit(access, args, { cwd, url, signal: both, timeoutMs });
    if (result.code === 124) throw tooMuch(args, url, `takes longer than ${minutes(timeoutMs)}`);
    return result;
  } catch (error) {
    const isOurs = error instanceof GitFailed || tooLarge.signal.aborted;
    if (!isOurs || signal?.aborted === true) throw error;
    await removeParts(packs);
    if (!tooLarge.signal.aborted) throw error;
    const mib = Math.floor(limit / 2 ** 20);
    throw tooMuch(
      args,
      url,
      `has more than ${mib} MiB, ${limit === maxBytes ? "the limit" : "half of what was free on the worker's disk"}`,
    );
  } finally {
    clearInterval(timer);
    await looking;
  }
}

const minutes = (ms: number): string => (ms < 60_000 ? `${ms / 1_000} s` : `${ms / 60_000} minutes`);

function tooMuch(args: readonly string[], url: string, why: string): GitFailed {
  const trouble: RemoteTrouble = {
    kind: "refused",
    message: `What ${url} sends ${why}, so it was stopped and nothing of it is kept`,
    fix: "It is not tried again. If the repository is meant, make room on the disk of the worker's LONGHAUL_GIT_FOLDER, or a faster way to the server; else choose another --repo.",
  };
  return new GitFailed(args, { code: 128, out: "", err: trouble.message, trouble });
}

async function halfOfFree(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder);
  return (bavail * bsize) / 2;
}

/** Of packs, also of those that are being received. */
async function sizeOf(folder: string): Promise<number> {
  const names = await readdir(folder).catch(() => []);
  const sizes = await Promise.all(
    names.map((name) =>
      stat(join(folder, name)).then(
        ({ size }) => size,
        () => 0,
      ),
    ),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}

/** What a stopped Git had received. */
async function removeParts(folder: string): Promise<void> {
  for (const name of await readdir(folder).catch(() => []))
    if (name.startsWith("tmp_")) await rm(join(folder, name), { force: true });
}
