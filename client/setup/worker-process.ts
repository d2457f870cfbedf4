/** The worker as a service of this machine: started detached, and replaced when its code or settings have changed. */
import { rmSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { childEnvironment } from "./environment.ts";
import {
  describeDifference,
  differenceOf,
  isDifferent,
  workerOrigin,
  type OriginDifference,
  type WorkerOrigin,
} from "./fingerprint.ts";
import { endProcess, isAlive, type ProcessMark } from "./processes.ts";
import type { Say } from "./progress.ts";
import { lostProtections, protectionMissing } from "./protections.ts";
import { findServices, type LocalServices, projectHome, settingOf } from "./services.ts";
import { startService } from "./start-service.ts";
import { locked, readState, remember, type RunningService } from "./state.ts";

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
    const environment = environmentOf(options.services);
    // Also that of a worker that died: only `down` ends one on purpose.
    const lost = lostProtections(readState(home).services.worker, environment);
    if (lost.length > 0) throw protectionMissing(lost);
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
  const difference = differenceOf(worker, workerOrigin(environmentOf(services)));
  return { worker, difference, isAlive: await isAlive(worker) };
}

/** A worker's environment, from this shell and the services. */
export const environmentOf = (services: LocalServices): NodeJS.ProcessEnv => ({
  // A person who starts a worker here can access the same Docker engine anyway, and shares it with no one.
  LONGHAUL_ALLOW_CONTAINERS: "1",
  LONGHAUL_OLD_RUNC: "warn",
  ...childEnvironment("worker"),
  ...services.environment,
});

/** Ends a worker whose set-up was interrupted: no one waits for it any more. */
async function endBrokenOff(home: string): Promise<void> {
  const left = readState(home).services["next-worker"];
  if (left === undefined) return;
  await endProcess(left, { graceMs: END_MS });
  remember(home, "next-worker", undefined);
}

/** `longhaul worker`: runs a worker in the foreground, on existing services. @throws ServiceMissing */
export async function runWorker(): Promise<void> {
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
