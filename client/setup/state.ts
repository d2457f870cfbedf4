/** What we started, with its addresses and settings: `.longhaul/services.json`, written under a lock. */
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { birthOf, isAlive, type ProcessMark, PRIVATE_FILE, PRIVATE_FOLDER } from "./processes.ts";
import type { Say } from "./progress.ts";
import { createHash } from "node:crypto";
import { ServiceMissing } from "../../temporal/service-missing.ts";
import type { Environment } from "../../activities/config/providers.ts";
import { inWords } from "../../activities/text/format.ts";

/** `next-worker` is one that starts while its predecessor still works. */
export type ServiceName = "postgres" | "temporal" | "docker" | "rehearsal" | "worker" | "next-worker";

export type FoundName = ServiceName | "queue";

/** Where services are set up, and how. */
export interface SetUp {
  /** Folder for data, logs and state. */
  readonly home: string;
  /** `fixed`: the usual ports, and what runs there is used; `free`, for tests: our own on free ports, nothing durable. */
  readonly ports: "fixed" | "free";
  readonly say: Say;
}

/** A process of ours, with what is needed to find it again. */
export interface RunningService extends ProcessMark {
  readonly address: string;
  readonly log: string;
  readonly uiUrl?: string;
  /** For the worker: hashes of the code and the settings that it was started from. */
  readonly code?: string;
  readonly settings?: Readonly<Record<string, string>>;
}

export interface LocalState {
  readonly services: Partial<Record<ServiceName, RunningService>>;
  /** Last known addresses of services that we did not start, and the task queue, if it is not the default. */
  readonly found: Partial<Record<FoundName, string>>;
  /** Names of the settings that the last worker had, whether or not it is still running. */
  readonly workerSettings?: readonly string[];
}

const LOCK_WAIT_MS = 15 * 60_000;

export function readState(home: string): LocalState {
  try {
    const state: Partial<LocalState> = JSON.parse(readFileSync(join(home, "services.json"), "utf8"));
    const { services = {}, found = {}, workerSettings } = state;
    return { services, found, workerSettings };
  } catch {
    // Missing, or half-written before a crash: each service is found again by its port or its own pid file.
    return { services: {}, found: {} };
  }
}

/** Writes atomically: a reader never sees half a file. */
function writeState(home: string, state: LocalState): void {
  mkdirSync(home, { recursive: true, mode: PRIVATE_FOLDER });
  const file = join(home, "services.json");
  const next = `${file}.${process.pid}`;
  writeFileSync(next, `${JSON.stringify(state, null, 2)}\n`, { mode: PRIVATE_FILE });
  renameSync(next, file);
}

export function remember(home: string, name: ServiceName, service: RunningService | undefined): void {
  const state = readState(home);
  const { [name]: _, ...others } = state.services;
  writeState(home, {
    ...state,
    services: service === undefined ? others : { ...others, [name]: service },
    ...(service?.settings === undefined ? {} : { workerSettings: Object.keys(service.settings) }),
  });
}

export function rememberFound(home: string, name: FoundName, address: string | undefined): void {
  const state = readState(home);
  if (state.found[name] === address) return;
  const { [name]: _, ...others } = state.found;
  writeState(home, { ...state, found: address === undefined ? others : { ...others, [name]: address } });
}

/** Runs `action` while no other process sets up or ends services of this home. A dead holder's lock is claimed. */
export async function locked<T>(home: string, say: Say, action: () => Promise<T>): Promise<T> {
  mkdirSync(home, { recursive: true, mode: PRIVATE_FOLDER });
  const file = join(home, "lock");
  const mine = JSON.stringify({ pid: process.pid, born: (await birthOf(process.pid)) ?? "" });
  const end = Date.now() + LOCK_WAIT_MS;
  let isReported = false;
  while (!take(file, mine)) {
    const holder = readHolder(file);
    if (holder !== undefined && !(await isAlive(holder))) {
      rmSync(file, { force: true });
    } else {
      if (!isReported)
        say(`Waiting for another longhaul (process ${holder?.pid ?? "?"}) to finish its set-up …`);
      isReported = true;
      if (Date.now() > end)
        throw new Error(
          `The lock ${file} is still held after 15 minutes. Remove it if no other longhaul is running.`,
        );
      await sleep(100);
    }
  }
  try {
    return await action();
  } finally {
    rmSync(file, { force: true });
  }
}

function take(file: string, content: string): boolean {
  try {
    writeFileSync(file, content, { flag: "wx", mode: PRIVATE_FILE });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

function readHolder(file: string): ProcessMark | undefined {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as ProcessMark;
  } catch {
    return undefined;
  }
}

/**
 * Settings that protect everyone who uses the local worker: no worker without them takes its place unasked. Each with the
 * value that protects no one, as an unset one does.
 */
const PROTECTIONS: Readonly<Record<string, string | undefined>> = {
  LONGHAUL_POLICY: undefined,
  LONGHAUL_CODEC_KEYS: undefined,
  LONGHAUL_HISTORY: "full",
  // These two values are the local worker's defaults.
  LONGHAUL_OLD_RUNC: "warn",
  LONGHAUL_ALLOW_CONTAINERS: "1",
};

/** Enough to distinguish two values, too little to recover one. */
export const HASH_CHARS = 12;

/** What the record of a worker keeps of a setting. */
export const settingHash = (name: string, value: string): string =>
  createHash("sha256").update(`${name}=${value}`).digest("hex").slice(0, HASH_CHARS);

/** No worker was started, because one started from this shell would lack a setting. */
export class SettingMissing extends ServiceMissing {}

/** Names of the protections that the recorded worker has, and one with this environment would not have. */
export function lostProtections(worker: RunningService | undefined, environment: Environment): string[] {
  const had = worker?.settings ?? {};
  return Object.entries(PROTECTIONS)
    .filter(([name, off]) => {
      const recorded = had[name];
      if (recorded === undefined || (off !== undefined && recorded === settingHash(name, off))) return false;
      const value = environment[name] || undefined;
      return value === undefined || value === off;
    })
    .map(([name]) => name);
}

/** For a worker that was not ended on purpose: `down` removes the record. */
export function protectionMissing(names: readonly string[]): SettingMissing {
  const list = inWords(names);
  return new SettingMissing({
    service: "A worker started from this shell",
    address: "",
    problem: `would lack the protection of ${list}, which the local worker has for everyone who uses it; none was started`,
    fix: `Set ${list} in this shell as for that worker, and repeat the command. To go on without, end that worker on purpose: longhaul down`,
  });
}
