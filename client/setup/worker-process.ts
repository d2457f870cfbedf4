/** The worker as a service of this machine: started detached, and replaced when its code or settings have changed. */
import { rmSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { childEnvironment } from "./environment.ts";
import { workerFingerprint } from "./fingerprint.ts";
import { endProcess, isAlive, type ProcessMark } from "./processes.ts";
import type { Say } from "./progress.ts";
import { findServices, type LocalServices, projectHome } from "./services.ts";
import { logOf, startService } from "./start-service.ts";
import { locked, readState } from "./state.ts";

const MAIN = fileURLToPath(new URL("../../worker/main.ts", import.meta.url));
const QUICK_START = new URL("../../scripts/quick-start.mjs", import.meta.url).href;
/** Its own grace, its force time, and a little. */
const END_MS = 20_000;

export interface WorkerProcess {
  readonly pid: number;
  /** False where the one that ran already is the right one. */
  readonly started: boolean;
  readonly log: string;
}

/** A worker that polls. @throws ServiceMissing where it ends at once or never polls */
export async function ensureWorker(options: {
  readonly home?: string;
  readonly services: LocalServices;
  readonly say: Say;
}): Promise<WorkerProcess> {
  const home = options.home ?? projectHome;
  const log = logOf(home, "worker");
  return locked(home, options.say, async () => {
    const environment = { ...childEnvironment("worker"), ...options.services.environment };
    const fingerprint = workerFingerprint(environment);
    const old = readState(home).services.worker;
    const oldRuns = old !== undefined && (await isAlive(old));
    if (oldRuns && old.fingerprint === fingerprint) return { pid: old.pid, started: false, log: old.log };
    if (oldRuns) options.say("The code or the settings changed: a new worker replaces the running one.");
    // The new one polls before the old one drains: nothing waits in between.
    const fresh = await start(home, environment, fingerprint);
    if (oldRuns) void endProcess(old, { graceMs: END_MS });
    options.say(`Worker started (process ${fresh.pid}, log in .longhaul/logs/worker.log).`);
    return { pid: fresh.pid, started: true, log };
  });
}

/** `longhaul worker`: one in the foreground, on services that are there already. @throws ServiceMissing */
export async function runWorker(options: { readonly services?: LocalServices } = {}): Promise<number> {
  const services = options.services ?? findServices();
  // What was found counts as configured, for us and for Temporal's own reader of the environment.
  Object.assign(process.env, services.environment);
  const [config, life] = await Promise.all([
    import("../../worker/config.ts"),
    import("../../worker/run-worker.ts"),
  ]);
  await life.runWorker(config.readWorkerConfig());
  return 0;
}

async function start(
  home: string,
  environment: NodeJS.ProcessEnv,
  fingerprint: string,
): Promise<ProcessMark> {
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
    facts: { fingerprint },
    replaces: true,
    probe: async ({ pid }) => {
      if (Number(await readFile(readyFile, "utf8")) !== pid) throw new Error("not ready");
    },
    timeoutMs: 30_000,
    otherwise: "run it in the foreground: longhaul worker",
  });
}
