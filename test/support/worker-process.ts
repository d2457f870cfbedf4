/** A real worker as its own process, started like `npm run worker`, so that it can be killed. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, mkdtempSync, openSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { WorkflowHandle } from "@temporalio/client";
import { eventually } from "./eventually.ts";
import { workerArgs } from "./program.ts";

/** A busy machine needs time to load what a worker needs. */
const READY_MS = 180_000;

export interface WorkerProcess {
  /** False once it has ended, for any reason. */
  readonly alive: boolean;
  /** kill -9: no handover, no orderly closing of sockets. Resolves when it is gone. */
  kill(): Promise<void>;
  readonly pid: number;
  /** Written when it polls. */
  readonly readyFile: string;
  /** SIGSTOP and SIGCONT: its connections stay open, and it does nothing in between. */
  stop(): void;
  resume(): void;
  /** SIGTERM. @returns its exit code */
  terminate(): Promise<number | null>;
  /** Its output so far. */
  log(): string;
}

export interface WorkerProcessOptions {
  /** A clone of the project that it runs from; default: this project. */
  readonly clone?: string;
  /** Its standard error goes there and not to `log()`. */
  readonly logFile?: string;
  /** Default in a temporary folder. */
  readonly readyFile?: string;
}

/** Starts a worker and waits until it polls. @throws Error with its log if it ends before or never does */
export async function startWorkerProcess(
  environment: Readonly<Record<string, string>>,
  options: WorkerProcessOptions = {},
): Promise<WorkerProcess> {
  const folder = mkdtempSync(join(tmpdir(), "longhaul-worker-"));
  const readyFile = options.readyFile ?? join(folder, "ready");
  const logFile = options.logFile === undefined ? undefined : openSync(options.logFile, "a");
  let log = "";
  const child = spawn(process.execPath, workerArgs(options.clone), {
    // Only the variables that any process has: a test's own settings must not decide.
    env: {
      PATH: process.env["PATH"],
      HOME: process.env["HOME"],
      DOCKER_HOST: process.env["DOCKER_HOST"],
      // Debian 12's own runc is refused otherwise.
      LONGHAUL_OLD_RUNC: "warn",
      ...environment,
      LONGHAUL_READY_FILE: readyFile,
    },
    stdio: ["ignore", "pipe", logFile ?? "pipe"],
  });
  if (logFile !== undefined) closeSync(logFile);
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding("utf8").on("data", (text: string) => (log += text));
  const ended = once(child, "exit").finally(() => rmSync(folder, { recursive: true, force: true }));
  const end = async (signal: NodeJS.Signals) => {
    child.kill(signal);
    await ended;
    return child.exitCode;
  };
  try {
    await eventually(
      "the worker polls",
      () => {
        if (child.exitCode !== null) throw new Error(`The worker ended with ${child.exitCode}.`);
        return existsSync(readyFile);
      },
      READY_MS,
    );
  } catch (error) {
    await end("SIGKILL");
    throw new Error(`${String(error)}\n${log}`, { cause: error });
  }
  return {
    pid: child.pid ?? 0,
    readyFile,
    get alive() {
      return child.exitCode === null && child.signalCode === null;
    },
    stop: () => void child.kill("SIGSTOP"),
    resume: () => void child.kill("SIGCONT"),
    kill: async () => void (await end("SIGKILL")),
    terminate: () => end("SIGTERM"),
    log: () => log,
  };
}

/** Asks it to end; one that hangs is killed. @returns its exit code */
export async function endWithin(worker: WorkerProcess, timeoutMs: number): Promise<number | null | "late"> {
  const late = sleep(timeoutMs, "late" as const, { ref: false });
  const code = await Promise.race([worker.terminate(), late]);
  if (code === "late") await worker.kill();
  return code;
}

/** Temporal's number for a pending activity that a worker has. */
const STARTED = 2;

/** The worker that now runs an activity of that type. */
export function busyWith(
  { handle }: { readonly handle: Pick<WorkflowHandle, "describe"> },
  workers: readonly WorkerProcess[],
  type: string,
): Promise<WorkerProcess> {
  return eventually(
    `${type} is under way`,
    async () => {
      const { raw } = await handle.describe();
      const pending = raw.pendingActivities?.find((activity) => activity.activityType?.name === type);
      const identity = pending?.state === STARTED ? (pending.lastWorkerIdentity ?? "") : "";
      return workers.find(({ pid }) => identity.startsWith(`${pid}.`));
    },
    60_000,
  );
}
