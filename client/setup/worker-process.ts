/** The worker as a service of this machine: started detached, followed by its log, and replaced when its code or settings have changed. */
import { rmSync, readdirSync, statSync, closeSync, fstatSync, openSync, readSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { childEnvironment, endProcess, isAlive, type ProcessMark, WORKER_SETTINGS } from "./processes.ts";
import type { Say } from "./progress.ts";
import {
  lostProtections,
  protectionMissing,
  HASH_CHARS,
  settingHash,
  locked,
  readState,
  remember,
  type RunningService,
} from "./state.ts";
import { findServices, type LocalServices, projectHome, settingOf, projectFolder } from "./services.ts";
import { startService, toLogPath } from "./start-service.ts";
import { createHash } from "node:crypto";
import { workerKeys } from "../config/session-keys.ts";
import { imageNamed } from "../../activities/config/sandbox-settings.ts";
import { inWords } from "../../activities/text/format.ts";
import type { Environment } from "../../activities/config/providers.ts";
import { setTimeout as sleep } from "node:timers/promises";
import { cutChars } from "../../activities/text/cut.ts";

const MAIN = fileURLToPath(new URL("../../worker/main.ts", import.meta.url));
const QUICK_START = new URL("../../scripts/quick-start.mjs", import.meta.url).href;
/** The worker's own grace period, its force time, and a margin. */
const END_MS = 20_000;

/**
 * Ensures that a worker polls.
 * @throws ServiceMissing if it ends at once or never polls, SettingMissing if it would lack a protection
 */
export async function ensureWorker(options: {
  readonly home?: string;
  readonly services: LocalServices;
  readonly say: Say;
}): Promise<void> {
  const home = options.home ?? projectHome;
  return locked(home, options.say, async () => {
    await endBrokenOff(home);
    const environment = toWorkerEnvironment(options.services);
    // Also that of a worker that died: only `down` ends one on purpose.
    const lostNames = lostProtections(readState(home).services.worker, environment);
    if (lostNames.length > 0) throw protectionMissing(lostNames);
    const running = await runningWorker(home, options.services);
    if (running !== undefined) {
      const { difference } = running;
      if (!isDifferent(difference)) return;
      options.say(`A new worker replaces the running one: ${describeDifference(difference)} changed.`);
    }
    // The new worker polls before the old one drains, so no task has to wait.
    const fresh = await start(home, environment);
    if (running !== undefined) void endProcess(running.worker, { graceMs: END_MS });
    options.say(`Worker started (process ${fresh.pid}, log in .longhaul/logs/worker.log).`);
  });
}

interface LastWorker {
  readonly worker: RunningService;
  readonly difference: OriginDifference;
  readonly isAlive: boolean;
}

/** The worker of this installation, if one runs, and how its settings differ from this environment's. */
export async function runningWorker(home: string, services: LocalServices): Promise<LastWorker | undefined> {
  const last = await lastWorker(home, services);
  return last?.isAlive === true ? last : undefined;
}

/** Like `runningWorker`, but also returns a recorded worker that is no longer alive. */
export async function lastWorker(home: string, services: LocalServices): Promise<LastWorker | undefined> {
  const { worker } = readState(home).services;
  if (worker === undefined) return undefined;
  const difference = compareOrigins(worker, workerOrigin(toWorkerEnvironment(services)));
  return { worker, difference, isAlive: await isAlive(worker) };
}

/** A worker's environment, from this shell and the services. */
export const toWorkerEnvironment = (services: LocalServices): NodeJS.ProcessEnv => ({
  // A person who starts a worker here can access the same Docker engine anyway, and shares it with no one.
  LONGHAUL_ALLOW_CONTAINERS: "1",
  LONGHAUL_OLD_RUNC: "warn",
  ...childEnvironment("worker"),
  ...storeCredentials(),
  ...definedKeys(),
  ...services.environment,
});

/** Of the object store, as Amazon's tools find them; only for one that is chosen. */
const storeCredentials = (): NodeJS.ProcessEnv =>
  settingOf("LONGHAUL_STORE") === undefined
    ? {}
    : Object.fromEntries(Object.entries(process.env).filter(([name]) => name.startsWith("AWS_")));

/** What the person's own file defines for the worker. */
function definedKeys(): NodeJS.ProcessEnv {
  const keys = workerKeys(process.env, process.cwd());
  const isElsewhere = settingOf("LONGHAUL_POLICY") !== undefined || Object.keys(keys).length === 0;
  return isElsewhere ? {} : { LONGHAUL_KEYS: JSON.stringify(keys) };
}

/** Ends a worker whose set-up was interrupted: no one waits for it any more. */
async function endBrokenOff(home: string): Promise<void> {
  const nextWorker = readState(home).services["next-worker"];
  if (nextWorker === undefined) return;
  await endProcess(nextWorker, { graceMs: END_MS });
  remember(home, "next-worker", undefined);
}

/** `longhaul worker`: runs a worker in the foreground, on existing services. @throws ServiceMissing */
export async function runForegroundWorker(): Promise<void> {
  // On this installation's own Postgres it is a local worker, like one that the set-up starts.
  const local = settingOf("DATABASE_URL") === undefined && settingOf("LONGHAUL_OLD_RUNC") === undefined;
  // The services that were found count as configured, for us and for Temporal's own environment reader.
  Object.assign(process.env, findServices().environment, local ? { LONGHAUL_OLD_RUNC: "warn" } : {});
  const [config, life] = await Promise.all([
    import("../../worker/config.ts"),
    import("../../worker/run-worker.ts"),
  ]);
  await life.runWorker(config.readWorkerConfig());
}

async function start(home: string, environment: NodeJS.ProcessEnv): Promise<ProcessMark> {
  const origin: WorkerOrigin = workerOrigin(environment);
  const readyFile = join(home, "worker.ready");
  rmSync(readyFile, { force: true });
  return startService({
    home,
    name: "worker",
    title: "Worker",
    command: process.execPath,
    args: ["--import", QUICK_START, MAIN],
    env: { ...environment, LONGHAUL_READY_FILE: readyFile },
    address: "",
    facts: origin,
    comesUpAs: "next-worker",
    probe: async ({ pid }) => {
      if (Number(await readFile(readyFile, "utf8")) !== pid) throw new Error("not ready");
    },
    timeoutMs: 30_000,
    otherwise: "run it in the foreground: longhaul worker",
  });
}

const SOURCES = ["activities", "temporal", "workflows", "worker", "package-lock.json"];

/** Records what a running worker was started from: if a source, key or address changes, a new worker is started. */
export interface WorkerOrigin {
  readonly code: string;
  /** A hash of each setting. Secrets are included; they cannot be recovered from the hash. */
  readonly settings: Readonly<Record<string, string>>;
}

export function workerOrigin(environment: Environment): WorkerOrigin {
  const code = createHash("sha256").update(process.version);
  for (const source of SOURCES) addFile(code, join(projectFolder, source));
  // Set-up passes the default image to the worker by name, which equals a shell without SANDBOX_IMAGE.
  const settled: Environment = {
    ...environment,
    SANDBOX_IMAGE: imageNamed(environment["SANDBOX_IMAGE"] || undefined),
  };
  const settings = Object.keys(settled)
    // An empty variable counts as unset, as everywhere.
    .filter((name) => WORKER_SETTINGS.test(name) && settled[name])
    .sort()
    .map((name) => [name, settingHash(name, settled[name] ?? "")] as const);
  return { code: code.digest("hex").slice(0, HASH_CHARS), settings: Object.fromEntries(settings) };
}

export interface OriginDifference {
  readonly code: boolean;
  readonly changed: readonly string[];
  /** Settings that the worker has and this environment lacks. */
  readonly lacking: readonly string[];
}

/** The differences between a worker's record and one that would be started now. */
export function compareOrigins(running: Partial<WorkerOrigin>, now: WorkerOrigin): OriginDifference {
  const had = running.settings ?? {};
  return {
    code: running.code !== now.code,
    changed: Object.keys(now.settings).filter((name) => had[name] !== now.settings[name]),
    lacking: Object.keys(had).filter((name) => !(name in now.settings)),
  };
}

export function isDifferent({ code, changed, lacking }: OriginDifference): boolean {
  return code || changed.length > 0 || lacking.length > 0;
}

/** Such as `the code and OPENAI_API_KEY`. */
export function describeDifference({ code, changed, lacking }: OriginDifference): string {
  return inWords([...(code ? ["the code"] : []), ...changed, ...lacking]);
}

function addFile(hash: ReturnType<typeof createHash>, path: string): void {
  const stats = statSync(path);
  if (stats.isDirectory()) {
    for (const name of readdirSync(path).sort()) addFile(hash, join(path, name));
  } else {
    hash.update(`${path} ${stats.size} ${stats.mtimeMs}\0`);
  }
}

const LOOK_MS = 500;
const READ_BYTES = 65_536;

/**
 * Prints the worker's new log lines, even after another one replaces it, until SIGINT or SIGTERM.
 * @returns true if it ended by itself
 */
export async function followWorker({
  home = projectHome,
  say,
}: {
  readonly home?: string;
  readonly say: Say;
}): Promise<boolean> {
  const stopRequest = new AbortController();
  const onSignal = () => stopRequest.abort();
  process.once("SIGINT", onSignal).once("SIGTERM", onSignal);
  const file = openSync(toLogPath(home, "worker"), "r");
  let [at, rest] = [fstatSync(file).size, ""];
  const bytes = Buffer.alloc(READ_BYTES);
  const read = () => {
    for (;;) {
      const count = readSync(file, bytes, 0, READ_BYTES, at);
      if (count === 0) return;
      at += count;
      const lines = (rest + bytes.toString("utf8", 0, count)).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) if (line !== "") say(readableLine(line));
    }
  };
  try {
    while (!stopRequest.signal.aborted) {
      read();
      const { worker } = readState(home).services;
      // No worker is recorded: `down` in another process ended it.
      if (worker === undefined) return false;
      if (!(await isAlive(worker))) {
        say(`The worker has ended. Its log: ${worker.log}`);
        return true;
      }
      await sleep(LOOK_MS, undefined, { signal: stopRequest.signal }).catch(() => undefined);
    }
    return false;
  } finally {
    closeSync(file);
    process.off("SIGINT", onSignal).off("SIGTERM", onSignal);
  }
}

/** A level of pino, whose levels are numbers. */
const WARN = 40;
const ERROR = 50;
const MAX_FIELD_CHARS = 200;
/** Fields that are the same in every line. */
const USUAL = new Set(["level", "time", "pid", "hostname", "name", "msg", "from"]);

/** Such as `10:02:07  warning: Postgres does not answer  attempt 3`; a line that is not JSON is unchanged. */
export function readableLine(line: string): string {
  let entry: Record<string, unknown>;
  try {
    const parsed: unknown = JSON.parse(line);
    if (typeof parsed !== "object" || parsed === null) return line;
    entry = parsed as Record<string, unknown>;
  } catch {
    return line;
  }
  const level = Number(entry["level"]);
  const lesser = level >= WARN ? "warning: " : "";
  const kind = level >= ERROR ? "error: " : lesser;
  const time = new Date(String(entry["time"]));
  const clock = Number.isNaN(time.getTime()) ? "" : `${time.toTimeString().slice(0, 8)}  `;
  const fields = Object.entries(entry)
    .filter(([name]) => !USUAL.has(name))
    .map(([name, value]) => `  ${name} ${cutChars(wordsOf(value), MAX_FIELD_CHARS)}`);
  return `${clock}${kind}${wordsOf(entry["msg"])}${fields.join("")}`;
}

function wordsOf(value: unknown): string {
  if (typeof value === "string") return value;
  const { message } = (value ?? {}) as { message?: unknown };
  return typeof message === "string" ? message : (JSON.stringify(value) ?? "");
}
