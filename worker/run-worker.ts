/** Runs the worker: connects, polls also while dependencies fail, and drains on SIGTERM. */
import { once } from "node:events";
import { rmSync, writeFileSync } from "node:fs";
import { flushCompileCache } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";
import { makeTelemetryFilterString, NativeConnection, Runtime, Worker } from "@temporalio/worker";
import { createSanitizer, joinedSecrets } from "../activities/redaction/sanitizer.ts";
import { connectDocker } from "../activities/sandbox/docker/connect-docker.ts";
import { engineAddress } from "../activities/sandbox/docker/engine-address.ts";
import { runcOf } from "../activities/sandbox/docker/known-escapes.ts";
import { createActivities } from "../activities/index.ts";
import { loadWorkflowBundle } from "./bundle.ts";
import { WorkerLease } from "../activities/store/worker-lease.ts";
import type { WorkerConfig } from "./config.ts";
import { bindDeps, type BoundDeps, type WorkerTools } from "./deps.ts";
import { probePostgres } from "../temporal/postgres-probe.ts";
import { probeDocker, temporalMissing, checkGit } from "../temporal/probe.ts";
import { ServiceMissing } from "../temporal/service-missing.ts";
import { PATIENT, patiently, withTimeout } from "../temporal/patience.ts";
import { createLogger, type Logger, temporalLogger } from "./logger.ts";
import { createLostWorkersWatch } from "./lost-workers.ts";
import { createReaper } from "./reaper.ts";
import { opened, ServiceList } from "./services.ts";
import { temporalConnection, type TemporalConnection } from "../temporal/connection.ts";
import { workerIdentity, workerOptions } from "./worker-options.ts";
import { isNetworkCode, reasonOf } from "../activities/contract/errors.ts";

/** Delays before polling again, each longer than the last, so that a server that is down is not flooded. */
const RESTART_MS = [1_000, 2_000, 5_000, 10_000, 30_000] as const;
/** Exit code 4 is promised within 10 s. */
const CONNECT_MS = 5_000;
const READY_AGAIN_MS = 5_000;
const STOP_SIGNALS = ["SIGTERM", "SIGINT"] as const;

/**
 * Runs until SIGTERM or SIGINT, then drains: what is in flight may end within the grace, the rest goes to another worker.
 * @throws ServiceMissing when a dependency does not answer at the start; one that goes away later is waited for
 */
export async function runWorker(config: WorkerConfig): Promise<void> {
  const sanitizer = createSanitizer(config.secrets, madeSecrets(config));
  const logger = createLogger(config.logLevel, sanitizer);
  guardProcess(logger);
  Runtime.install({
    logger: temporalLogger(logger),
    telemetryOptions: { logging: { forward: {}, filter: makeTelemetryFilterString({ core: "WARN" }) } },
    // We listen ourselves, so that a worker that is being restarted can be ended too.
    shutdownSignals: [],
  });
  const { connection, namespace, bundle } = await connectServices(config, logger);
  const identity = workerIdentity(config);
  const bound = await bindDeps(config, { connection, namespace, sanitizer, logger, identity });
  const { deps } = bound;
  const services = servicesOf(config, bound, { connection, namespace, logger, identity, sanitizer });
  const outdated = new AbortController();
  const parts = {
    config,
    connection,
    namespace,
    bundle,
    identity,
    activities: createActivities({ ...deps, outdated: () => outdated.abort() }),
    announceStop: deps.announcements.announceStop,
  };
  await services.start();
  try {
    await pollUntilStopped(config, logger, {
      outdated: outdated.signal,
      onStop: () => deps.countedSaves.countNoMore(),
      create: () => Promise.all(workerOptions(parts).map((options) => Worker.create(options))),
    });
  } finally {
    if (config.readyFile !== undefined) rmSync(config.readyFile, { force: true });
    await services.stop();
    logger.info("worker ended");
  }
}

/** What runs beside the activities, in the order in which it starts. */
function servicesOf(
  config: WorkerConfig,
  { deps, services }: BoundDeps,
  { connection, namespace, logger, identity, sanitizer }: WorkerTools,
): ServiceList {
  const { codecKeys } = config;
  const { store, sandboxHost: host, countedSaves } = deps;
  const temporal = { connection, namespace, codecKeys, logger };
  const lease = new WorkerLease({
    url: config.databaseUrl,
    identity,
    namespace,
    frozenMs: config.heartbeatTimeoutMs,
    sessionsAtWork: () => deps.announcements.sessionsAtWork(),
  });
  const reaper = createReaper({
    ...temporal,
    taskQueue: config.queues.workflows,
    hostQueue: deps.taskQueues.sandbox,
    host,
    store,
    countedSaves,
    everyMs: config.reapMs,
    git: config.git,
    clean: sanitizer.clean,
    retention: config.policy?.retention,
    hostDisk: config.hostDisk,
  });
  return new ServiceList(
    [
      opened(() => connection.close()),
      services,
      lease,
      createLostWorkersWatch({ ...temporal, lease, store, identity }),
      reaper,
    ],
    logger,
  );
}

/** Connects to Temporal, and checks whether Postgres and the Docker engine answer. @throws ServiceMissing */
async function connectServices(config: WorkerConfig, logger: Logger) {
  const { native: options, namespace, listenAddress } = temporalConnection();
  const [connection, bundle] = await Promise.all([
    connect(options, listenAddress),
    loadWorkflowBundle(undefined, { encrypts: config.codecKeys.length > 0 }),
    probePostgres(config.databaseUrl, { ...PATIENT, say: (line) => logger.warn(line) }),
    probeDocker().then(() => checkRuntime(config, logger)),
    checkGit(config.git),
  ]);
  if ("notKept" in bundle)
    logger.warn(
      { reason: bundle.notKept },
      "the workflow bundle was not kept; the next start builds it again",
    );
  return { connection, namespace, bundle };
}

/** @throws ServiceMissing if the engine's runtime has known container escapes and the operator does not accept that */
async function checkRuntime({ oldRunc }: WorkerConfig, logger: Logger): Promise<void> {
  const runc = await withTimeout(runcOf(connectDocker()), CONNECT_MS).catch(() => undefined);
  if (runc !== undefined && runc.open.length === 0) return;
  const problem =
    runc === undefined
      ? "does not say which runc it starts sandboxes with"
      : `starts sandboxes with runc ${runc.version}, a version with known container escapes (${runc.open.join(", ")})`;
  if (oldRunc === "warn") {
    logger.warn({ runc }, `the Docker engine ${problem}`);
    return;
  }
  throw new ServiceMissing({
    service: "The Docker engine",
    address: engineAddress().shown,
    problem,
    fix: "Update runc (1.2.8, 1.3.3 or newer has all fixes), or set LONGHAUL_OLD_RUNC=warn to take the risk.",
  });
}

/** The native client's own error for a missing server is long and names no fix. */
async function connect(
  options: TemporalConnection["native"],
  listenAddress: TemporalConnection["listenAddress"],
): Promise<NativeConnection> {
  try {
    return await patiently("Temporal", listenAddress, PATIENT, () => NativeConnection.connect(options));
  } catch (error) {
    throw temporalMissing(options.address ?? "", error);
  }
}

/**
 * Polls again after each failure (a namespace away, a server's refusal) until a signal arrives. A worker that turned out to be older
 * than the database no longer polls: whatever it took would fail, and uses up attempts that a newer worker could make.
 */
async function pollUntilStopped(
  config: WorkerConfig,
  logger: Logger,
  {
    outdated,
    onStop,
    create,
  }: {
    readonly outdated: AbortSignal;
    readonly onStop: () => Promise<void>;
    readonly create: () => Promise<Worker[]>;
  },
): Promise<void> {
  const stop = new AbortController();
  const onSignal = (signal: NodeJS.Signals) => {
    logger.info({ signal }, "draining: running activities may end, others go to another worker");
    stop.abort();
    onStop().catch((error: unknown) =>
      logger.warn({ reason: reasonOf(error) }, "saves in progress stay counted until they end"),
    );
  };
  for (const signal of STOP_SIGNALS) process.on(signal, onSignal);
  const noMore = AbortSignal.any([stop.signal, outdated]);
  outdated.addEventListener("abort", () =>
    logger.error(
      "this worker is older than the database: it takes no more work, which waits for a newer one; replace it",
    ),
  );
  try {
    for (let attempt = 0; !noMore.aborted; attempt += 1) {
      const began = performance.now();
      try {
        await poll(await create(), noMore, config, logger);
      } catch (error) {
        // After a healthy minute the delays start over.
        if (performance.now() - began > 60_000) attempt = 0;
        const waitMs = RESTART_MS[Math.min(attempt, RESTART_MS.length - 1)] ?? 0;
        logger.error({ err: error, waitMs }, "polling failed; it starts again");
        await sleep(waitMs, undefined, { signal: noMore }).catch(() => {});
      }
    }
    if (config.readyFile !== undefined) rmSync(config.readyFile, { force: true });
    // A process manager would only start it again.
    if (!stop.signal.aborted) await once(stop.signal, "abort");
  } finally {
    for (const signal of STOP_SIGNALS) process.off(signal, onSignal);
  }
}

async function poll(
  workers: readonly Worker[],
  stop: AbortSignal,
  config: WorkerConfig,
  logger: Logger,
): Promise<void> {
  const shutdown = () => {
    for (const worker of workers) if (worker.getState() === "RUNNING") worker.shutdown();
  };
  const runs = workers.map((worker) => worker.run());
  stop.addEventListener("abort", shutdown, { once: true });
  if (stop.aborted) shutdown();
  const { queues, host, buildId, readyFile } = config;
  logger.info({ queues, host, buildId, pid: process.pid }, "worker polls");
  const stopWriting = writeReadyFile(readyFile, logger);
  // Node keeps what it compiled only when it exits, which a process that is killed never does.
  flushCompileCache();
  try {
    await Promise.all(runs);
  } finally {
    stopWriting();
    // If one of several failed, the others end too, and the next attempt starts all of them.
    shutdown();
    await Promise.allSettled(runs);
    stop.removeEventListener("abort", shutdown);
  }
}

/** Writes the ready file; if the disk is full, as soon as there is room. */
function writeReadyFile(file: string | undefined, logger: Logger): () => void {
  if (file === undefined) return () => undefined;
  const write = (): boolean => {
    try {
      writeFileSync(file, `${process.pid}\n`);
      return true;
    } catch (error) {
      logger.warn({ reason: (error as Error).message }, "the ready file is not written; it is tried again");
      return false;
    }
  };
  if (write()) return () => undefined;
  const timer = setInterval(() => write() && clearInterval(timer), READY_AGAIN_MS);
  return () => clearInterval(timer);
}

/**
 * Errors that nothing awaited. A broken connection is logged and the worker continues: a dependency's restart never ends a
 * worker. Anything else leaves unknown state: the process ends, and Temporal gives its work to another.
 */
function guardProcess(logger: Logger): void {
  const judge = (error: unknown) => {
    const code = (error as { code?: unknown } | null)?.code;
    // Postgres' class 57P: it is shutting down or starting.
    if (typeof code === "string" && (isNetworkCode(code) || code === "ENOENT" || code.startsWith("57P"))) {
      logger.warn({ err: error }, "a connection broke; the worker continues");
      return;
    }
    logger.fatal({ err: error }, "an unhandled error; the worker ends and another takes its work");
    process.exit(1);
  };
  // A log file on a full disk: that line is lost, the worker continues, and writes again when there is room.
  process.stderr.on("error", () => undefined);
  process.on("unhandledRejection", judge);
  process.on("uncaughtException", judge);
}

/** Tokens that this process gets while it runs. */
const madeSecrets = ({ git, identities }: WorkerConfig) => joinedSecrets(git.madeSecrets, identities.issued);
