/** Processes that outlive us: started detached, with few variables and a private log, identified by pid and start time so that a recycled pid is never killed. */
import { type ChildProcess, execFile, type ExecFileOptions, spawn } from "node:child_process";
import {
  accessSync,
  closeSync,
  constants,
  fchmodSync,
  mkdirSync,
  openSync,
  readFileSync,
  chmodSync,
  lstatSync,
  readdirSync,
} from "node:fs";
import { createServer } from "node:net";
import { delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";
import { cutChars } from "../../activities/text/cut.ts";
import { until } from "../../temporal/patience.ts";
import type { Environment } from "../../activities/config/providers.ts";

const execute = promisify(execFile);

/** Runs a program and waits for its end. Without `env`, it inherits the variables allowed for every service. */
export function run(
  command: string,
  args: readonly string[],
  options: ExecFileOptions = {},
): Promise<{ stdout: string; stderr: string }> {
  const running = execute(command, [...args], {
    env: childEnvironment("service"),
    ...options,
    encoding: "utf8",
  });
  const { child } = running;
  programs.add(child);
  return running.finally(() => programs.delete(child));
}

/** The last line that a program of `run` wrote to its standard error, or why it did not run. */
export function lastWords(error: unknown): string {
  const { stderr, message } = error as { stderr?: string; message?: string };
  return cutChars((stderr || message)?.trim().split("\n").at(-1) ?? "failed", 300);
}

/** Child processes whose end is awaited. */
const programs = new Set<ChildProcess>();

/** Ends these processes when we end. Resolves when they are gone. */
export async function endPrograms(): Promise<void> {
  for (const signal of ["SIGTERM", "SIGKILL"] as const) {
    for (const child of programs) child.kill(signal);
    if (await until(() => programs.size === 0, 10_000)) return;
  }
}

/** A process's identity: `born` is its start time as the system reports it. */
export interface ProcessMark {
  readonly pid: number;
  readonly born: string;
}

export interface Launch {
  readonly command: string;
  readonly args: readonly string[];
  readonly log: string;
  /** Default: the variables allowed for every service. */
  readonly env?: NodeJS.ProcessEnv;
  readonly cwd?: string;
  readonly uid?: number;
  readonly gid?: number;
}

/** Waits for a line from us before it executes the program; if we are gone, it exits. */
const GATE = 'read -r go && exec "$@" </dev/null';

/**
 * Starts a process in its own session, with its output in `log`: Ctrl-C in our terminal does not reach it. Only its user
 * can access the files that it creates.
 * @param record stores its identity. The program runs only after that, so even if we are killed, it is recorded
 */
export async function launch(
  program: Launch,
  record: (mark: ProcessMark) => void = () => undefined,
): Promise<ProcessMark> {
  requireProgram(program.command);
  mkdirSync(dirname(program.log), { recursive: true, mode: PRIVATE_FOLDER });
  const log = openSync(program.log, "a", PRIVATE_FILE);
  // The child inherits this umask; no other code runs before ours is restored.
  const umask = process.umask(0o077);
  try {
    fchmodSync(log, PRIVATE_FILE);
    const child = spawn("/bin/sh", ["-c", GATE, "sh", program.command, ...program.args], {
      detached: true,
      stdio: ["pipe", log, log],
      env: program.env ?? childEnvironment("service"),
      cwd: program.cwd,
      uid: program.uid,
      gid: program.gid,
    });
    process.umask(umask);
    await new Promise<void>((resolve, reject) => {
      child.once("spawn", resolve);
      child.once("error", reject);
    });
    child.unref();
    const pid = child.pid ?? 0;
    const mark = { pid, born: (await birthOf(pid)) ?? "gone" };
    const { stdin } = child;
    stdin?.on("error", () => undefined);
    try {
      record(mark);
    } catch (error) {
      stdin?.destroy();
      throw error;
    }
    await new Promise<void>((resolve) => stdin?.end("go\n", resolve));
    return mark;
  } finally {
    process.umask(umask);
    closeSync(log);
  }
}

/** When a process started, as a comparable text; undefined if it is gone or a zombie. */
export async function birthOf(pid: number): Promise<string | undefined> {
  if (process.platform === "linux") {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
      // The name in parentheses may contain anything: fields are counted from its last bracket.
      const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      return fields[0] === "Z" ? undefined : fields[19];
    } catch {
      return undefined;
    }
  }
  try {
    const { stdout } = await run("ps", ["-o", "lstart=", "-p", String(pid)]);
    return stdout.trim() || undefined;
  } catch {
    return undefined;
  }
}

export async function isAlive(mark: ProcessMark): Promise<boolean> {
  return (await birthOf(mark.pid)) === mark.born;
}

/** Ends a process: `signal`, then KILL after `graceMs`. Returns false if it was gone already. */
export async function endProcess(
  mark: ProcessMark,
  options: { signal?: NodeJS.Signals; graceMs?: number } = {},
): Promise<boolean> {
  if (!(await isAlive(mark))) return false;
  send(mark.pid, options.signal ?? "SIGTERM");
  const hasEnded = await until(async () => !(await isAlive(mark)), options.graceMs ?? 10_000);
  if (!hasEnded) {
    send(mark.pid, "SIGKILL");
    await until(async () => !(await isAlive(mark)), 5_000);
  }
  return true;
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    // It ended between the check and the signal.
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/** `wanted` if it is free, else any free port; `wanted` 0 = any. On 127.0.0.1. */
export async function freePort(preferred = 0): Promise<number> {
  const port = await tryListen(preferred);
  if (port !== undefined) return port;
  const other = await tryListen(0);
  if (other === undefined) throw new Error("No free port on 127.0.0.1.");
  return other;
}

function tryListen(port: number): Promise<number | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(undefined));
    server.listen(port, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : undefined));
    });
  });
}

/** @throws Error ENOENT if there is no such program, like a start without a shell */
function requireProgram(command: string): void {
  const isThere = command.includes("/") ? isExecutable(command) : findOnPath(command) !== undefined;
  if (!isThere) throw Object.assign(new Error(`spawn ${command} ENOENT`), { code: "ENOENT" });
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Finds a program on PATH by name. */
export function findOnPath(name: string): string | undefined {
  for (const folder of (process.env["PATH"] ?? "").split(delimiter)) {
    if (folder === "") continue;
    const file = join(folder, name);
    if (isExecutable(file)) return file;
  }
  return undefined;
}

/** The last lines of a log, for an error's text. */
export function tail(log: string, lines = 5): string {
  try {
    return readFileSync(log, "utf8").trimEnd().split("\n").slice(-lines).join("\n");
  } catch {
    return "";
  }
}

/** The receivers: every process, those that fetch packages, the engine, our own programs, the worker, Git for the person who calls us. */
export type Purpose = "service" | "installer" | "dockerd" | "rehearsal" | "worker" | "git";

const ANY =
  /^(PATH|HOME|USER|LOGNAME|SHELL|TERM|LANG|LANGUAGE|LC_[A-Z]+|TZ|TMPDIR|TMP|TEMP|XDG_[A-Z_]+|LD_LIBRARY_PATH|SYSTEMROOT)$/i;
/** A proxy's address may contain a password, which fetching programs need. */
const NETWORK =
  /^((https?|ftp|all|no)_proxy|SSL_CERT_(FILE|DIR)|NODE_EXTRA_CA_CERTS|NODE_USE_SYSTEM_CA|NODE_USE_ENV_PROXY|(CURL|REQUESTS)_CA_BUNDLE|GIT_SSL_CAINFO|PIP_CERT)$/i;
const NODE = /^NODE_(OPTIONS|ENV|NO_WARNINGS|TLS_REJECT_UNAUTHORIZED)$/;

/**
 * Settings of the worker. A change to any of them starts a new worker, so settings of the client alone are not included.
 * `PGSSLROOTCERT` and the like belong to the database client.
 */
export const WORKER_SETTINGS =
  /^(OPENAI_|LONGHAUL_(?!(USER|CONFIG|DEBUG|NO_SETUP|NO_INSTALL|CODEC_TOKEN)$|SERVE_)|TEMPORAL_|DOCKER_|DATABASE_|SANDBOX_IMAGE$|OTEL_|PG[A-Z]+$|AZURE_OPENAI_BASE_URL$|[A-Z][A-Z0-9_]*_API_(KEY|TOKEN)$)/;

/**
 * All but what names another repository, index or folder than the one that is worked on, as in a hook of Git. Source:
 * `git rev-parse --local-env-vars`, without a person's settings.
 */
const NO_GIT_PLACE =
  /^(?!GIT_(DIR|COMMON_DIR|(IMPLICIT_)?WORK_TREE|INDEX_FILE|(ALTERNATE_)?OBJECT_DIRECTOR(Y|IES)|NAMESPACE|PREFIX|SHALLOW_FILE|GRAFT_FILE|REPLACE_REF_BASE|NO_REPLACE_OBJECTS|INTERNAL_SUPER_PREFIX)$)/;

const ALLOWED: Readonly<Record<Purpose, readonly RegExp[]>> = {
  service: [ANY],
  installer: [
    ANY,
    NETWORK,
    /^(DEBIAN_FRONTEND|APT_CONFIG|CGO_ENABLED|GO[A-Z0-9]+|PIP_[A-Z_]+|npm_config_.+)$/i,
  ],
  dockerd: [ANY, NETWORK, /^(DOCKER_(RAMDISK|TMPDIR)|DOCKERD_[A-Z_]+|MOBY_[A-Z_]+)$/],
  rehearsal: [ANY, NODE, /^LONGHAUL_REHEARSAL_/],
  // The engine may be reached over ssh.
  worker: [ANY, NETWORK, NODE, WORKER_SETTINGS, /^(SSH_AUTH_SOCK|GNUPGHOME)$/],
  git: [NO_GIT_PLACE],
};

/** The variables that a child process inherits: an allow-list per purpose, so that a key reaches only what needs it. */
export function childEnvironment(
  purpose: Purpose,
  environment: Environment = process.env,
): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(environment).filter(([name]) => ALLOWED[purpose].some((pattern) => pattern.test(name))),
  );
}

/** `.longhaul` is private to its owner: it contains a database's password, logs, and the history of every task. */
export const PRIVATE_FOLDER = 0o700;
export const PRIVATE_FILE = 0o600;

/** Creates the folder and its log folder, or restricts what others may do in them. */
export function makePrivate(home: string): void {
  for (const folder of [home, join(home, "logs")]) {
    mkdirSync(folder, { recursive: true, mode: PRIVATE_FOLDER });
    if (isOurs(folder)) chmodSync(folder, PRIVATE_FOLDER);
    for (const name of readdirSync(folder)) {
      const path = join(folder, name);
      if (isOurs(path) && lstatSync(path).isFile()) chmodSync(path, PRIVATE_FILE);
    }
  }
}

function isOurs(path: string): boolean {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  return stat !== undefined && stat.uid === (process.getuid?.() ?? stat.uid);
}
