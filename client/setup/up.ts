/**
 * How all commands start this machine's services, check that the worker has the keys that sessions need, report what stays up after
 * Ctrl-C, and end them.
 */
import type { Say } from "./progress.ts";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { probeTables } from "../../temporal/postgres-probe.ts";
import {
  isDifferent,
  ensureWorker,
  toWorkerEnvironment,
  lastWorker,
  followWorker,
} from "./worker-process.ts";
import {
  bringDown,
  bringUp,
  findServices,
  type LocalServices,
  type Need,
  projectHome,
  settingOf,
} from "./services.ts";
import { readState, SettingMissing } from "./state.ts";
import { configuredTemporal } from "./temporal.ts";
import { endPrograms, isAlive } from "./processes.ts";
import type { Connection } from "@temporalio/client";
import { type ListedRun, listRuns } from "../../temporal/runs.ts";
import { temporalClient } from "../../temporal/temporal-client.ts";
import { askTemporal, pollersOf } from "./temporal-server.ts";
import { listNames, present } from "../console/format.ts";
import { runConfigSchema } from "../../activities/config/agent-config.ts";
import type { ModelTarget } from "../../activities/config/model-target.ts";
import { type Environment, missingVariables } from "../../activities/config/providers.ts";
import { openStore, type Store } from "../../activities/store/db.ts";
import { listSessions, type SessionRow } from "../../activities/store/reading.ts";
import { withoutPassword } from "../../temporal/probe.ts";
import { inWords } from "../../activities/text/format.ts";
import { findByReference } from "../lookup/find-by-reference.ts";
import { unlessTableMissing } from "../lookup/unless-table-missing.ts";

const ALL: readonly Need[] = ["postgres", "temporal", "docker", "image", "model"];

export interface LocalOptions {
  readonly say: Say;
  readonly home?: string;
  /** As for `bringUp`. */
  readonly image?: string;
  /** The command's session, which will call its model. */
  readonly reference?: string;
  /** Starts a worker even if it lacks keys that open sessions need: missing keys are only reported. */
  readonly anyway?: boolean;
}

/**
 * Starts everything a task needs, and leaves it running.
 * @throws ServiceMissing; SettingMissing if the worker would lack a key that an open session needs, or a protection
 */
export function prepare(options: LocalOptions): Promise<LocalServices> {
  return reportingWhatStays(options, async () => {
    const services = await bringUp({ ...options, need: ALL });
    // Tables that a worker could not use are told here, and not only in its log.
    await probeTables(services.databaseUrl);
    const lacking = await lackingKeys({
      services,
      environment: toWorkerEnvironment(services),
      had: readState(options.home ?? projectHome).workerSettings ?? [],
      reference: options.reference,
    });
    if (lacking !== undefined && options.anyway !== true) throw lacking;
    if (lacking !== undefined) options.say(`! The worker lacks a key: ${lacking.problem}`);
    await ensureWorker({ ...options, services });
    return services;
  });
}

/** Postgres and Temporal, for commands that only read. @throws ServiceMissing */
export function prepareStores(options: LocalOptions): Promise<LocalServices> {
  return reportingWhatStays(options, () => bringUp({ ...options, need: ["postgres", "temporal"] }));
}

/** True if this installation's own services hold sessions: missing ones were stopped, and can be restarted. */
export function hasOwnServices(home = projectHome): boolean {
  return settingOf("DATABASE_URL") === undefined && existsSync(join(home, "postgres"));
}

/**
 * Whether a command that needs a worker has to start one first: the services are ours and no worker runs, or the worker's
 * settings differ from this shell's. If this shell merely lacks some, such as the key, the running worker is kept.
 */
export async function lacksWorker(home = projectHome): Promise<boolean> {
  const last = await lastWorker(home, findServices(home));
  if (last?.isAlive !== true) return hasOwnServices(home) && configuredTemporal() === undefined;
  return last.difference.lacking.length === 0 && isDifferent(last.difference);
}

/**
 * `longhaul up`: services and a worker, until SIGINT or SIGTERM ends both; detached, they stay.
 * @returns false if the worker ended by itself
 */
export async function up(options: LocalOptions & { readonly detach: boolean }): Promise<boolean> {
  const services = await prepare({ ...options, anyway: true });
  const ui = services.uiUrl === undefined ? "" : ` The Web UI is at ${services.uiUrl}.`;
  const end = options.detach ? "`longhaul down` ends" : "Ctrl-C ends";
  options.say(`Everything is running.${ui} ${end} the worker and these services; data stays in .longhaul.`);
  if (options.detach) return true;
  const lost = await followWorker(options);
  await down({ ...options, all: false });
  return !lost;
}

/**
 * `longhaul down`: ends the worker and the services that we started, and lists the tasks that have to wait. A Temporal
 * server of ours that another installation uses keeps running, unless `all` is set.
 */
export async function down(options: LocalOptions & { readonly all: boolean }): Promise<void> {
  const { say } = options;
  const home = options.home ?? projectHome;
  const services = findServices(home);
  const ours = readState(home).services;
  const use = Object.keys(ours).length === 0 ? undefined : await serverUse(services);
  const shared = ours.temporal !== undefined && use !== undefined && use.others.length > 0;
  if (ours.temporal !== undefined && use === undefined)
    say("Temporal does not answer, so unfinished tasks cannot be listed. None of them is lost.");
  for (const line of use === undefined ? [] : describeUse(use, { shared, all: options.all })) say(line);
  const { ended } = await bringDown({ home, say, keep: shared && !options.all ? ["temporal"] : [] });
  say(
    ended.length === 0
      ? "Nothing started by longhaul was running."
      : `Stopped: ${ended.join(", ")}. Data stays in .longhaul.`,
  );
}

const EXIT_CODES = { SIGINT: 130, SIGTERM: 143 } as const;

/** Runs set-up work. If a signal arrives meanwhile, prints what stays up and ends this process. */
export async function reportingWhatStays<T>(
  { home = projectHome, say }: { readonly home?: string; readonly say: Say },
  action: () => Promise<T>,
): Promise<T> {
  let interrupted = false;
  const onSignal = (signal: keyof typeof EXIT_CODES) => {
    interrupted = true;
    void endPrograms()
      .then(() => whatStays(home))
      .then(say)
      .finally(() => process.exit(EXIT_CODES[signal]));
  };
  process.once("SIGINT", onSignal).once("SIGTERM", onSignal);
  try {
    return await action();
  } catch (error) {
    // A failure now is a consequence of the signal, whose exit code counts.
    if (interrupted) await new Promise(() => undefined);
    throw error;
  } finally {
    process.off("SIGINT", onSignal).off("SIGTERM", onSignal);
  }
}

async function whatStays(home: string): Promise<string> {
  const names: string[] = [];
  for (const [name, service] of Object.entries(readState(home).services))
    if (await isAlive(service)) names.push(`${name.replace("next-", "")} (process ${service.pid})`);
  return names.length === 0
    ? "Interrupted: nothing that longhaul started is running."
    : `Interrupted. These keep running for the next start: ${names.join(", ")}. End them with: longhaul down`;
}

/** Time to connect. Chosen: on a busy machine. */
const CONNECT_MS = 10_000;
/** How many runs are checked, newest first, for queues of other installations. */
const LOOKED_AT = 500;

/** Who uses a Temporal server: what `down` reports before it ends one. */
export interface ServerUse {
  /** Sessions of this installation whose runs are open. */
  readonly running: readonly string[];
  /** Other installations' task queues with open runs or a worker, including those whose pollers could not be read. */
  readonly others: readonly OtherUse[];
}

interface OtherUse {
  readonly queue: string;
  readonly running: number;
  readonly isUnsure?: boolean;
}

/** Undefined if the server does not answer. */
function serverUse(server: {
  readonly temporalAddress: string;
  readonly taskQueue: string;
}): Promise<ServerUse | undefined> {
  return askTemporal(server.temporalAddress, CONNECT_MS, (connection, namespace) =>
    useOfServer(connection, namespace, server.taskQueue),
  ).catch(() => undefined);
}

async function useOfServer(connection: Connection, namespace: string, ownQueue: string): Promise<ServerUse> {
  const client = temporalClient({ connection, namespace });
  const runs: ListedRun[] = [];
  for await (const run of listRuns(client, "all")) if (runs.push(run) === LOOKED_AT) break;
  const open = (queue: string) => runs.filter((run) => run.taskQueue === queue && run.status === "RUNNING");
  const queues = [...new Set(runs.map((run) => run.taskQueue))].filter((name) => name !== ownQueue);
  // In parallel, so that requests without an answer take the time limit only once.
  const uses = await Promise.all(
    queues.map(async (queue): Promise<OtherUse[]> => {
      const running = open(queue).length;
      if (running > 0) return [{ queue, running }];
      const pollers = await pollersOf(connection, namespace, queue).catch(() => undefined);
      if (pollers === undefined) return [{ queue, running, isUnsure: true }];
      return pollers.length > 0 ? [{ queue, running }] : [];
    }),
  );
  return { running: open(ownQueue).map(({ workflowId }) => workflowId), others: uses.flat() };
}

/** The message for the person before the server is ended. */
export function describeUse(
  { running, others }: ServerUse,
  { shared, all }: { readonly shared: boolean; readonly all: boolean },
): string[] {
  const queues = others.map((other) => `${other.queue} (${useOf(other)})`).join(", ");
  const open = `Not finished: ${listNames(running)}. Nothing is lost; \`longhaul up --detach\` or any command continues it.`;
  const temporal = all
    ? `Temporal also ends for another installation, because of --all: ${queues}.`
    : `Temporal stays up: another installation uses it, ${queues}. End it anyway: longhaul down --all`;
  return present(running.length > 0 && open, shared && temporal);
}

function useOf({ running, isUnsure }: OtherUse): string {
  if (running > 0) return `open tasks: ${running}`;
  return isUnsure === true
    ? "no open task; Temporal does not say whether it has a worker"
    : "a worker, no open task";
}

/** How many sessions are checked, newest first. */
const CHECKED_SESSIONS = 500;

export interface KeysNeeded {
  readonly services: LocalServices;
  /** The variables, including keys, that the worker would have. */
  readonly environment: Environment;
  /** Names of the settings that the last worker had. */
  readonly had: readonly string[];
  /** The command's session, which will call its model. */
  readonly reference?: string | undefined;
}

/**
 * Finds keys that a worker would lack. For open sessions, only keys that the last worker had count; for the command's own
 * session, all of them do.
 * @returns undefined if nothing is lacking
 */
export async function lackingKeys(needed: KeysNeeded): Promise<SettingMissing | undefined> {
  const { services, environment, had, reference } = needed;
  const lostNames = had.filter((name) => !environment[name]);
  if (lostNames.length === 0 && reference === undefined) return undefined;
  const store = openStore({ url: services.databaseUrl, maxConnections: 1 });
  try {
    const [session, open] = await Promise.all([
      reference === undefined ? undefined : findReferenced(store, reference),
      lostNames.length === 0 ? [] : openSessions(store),
    ]);
    const lacks = [
      ...(session === undefined ? [] : [{ id: session.id, names: missingFor(session, environment) }]),
      ...open.map((row) => ({
        id: row.id,
        names: missingFor(row, environment).filter((name) => lostNames.includes(name)),
      })),
    ].filter(({ names }) => names.length > 0);
    if (lacks.length === 0) return undefined;
    const names = [...new Set(lacks.flatMap((lack) => lack.names))];
    const ids = [...new Set(lacks.map(({ id }) => id))];
    return new SettingMissing({
      service: "A worker started from this shell",
      address: withoutPassword(services.databaseUrl),
      problem: `would lack ${inWords(names)}, which ${listNames(ids)} ${ids.length === 1 ? "needs" : "need"}; none was started`,
      fix: `Set ${inWords(names)} in this shell and repeat the command, or start a worker without: longhaul up --detach`,
    });
  } finally {
    await store.close();
  }
}

/** The session that is meant. @returns undefined if there is no match: the command reports that */
async function findReferenced({ db }: Store, reference: string): Promise<SessionRow | undefined> {
  return unlessTableMissing(() => findByReference(db, reference)).catch(() => undefined);
}

async function openSessions({ db }: Store): Promise<SessionRow[]> {
  const list = async () =>
    Promise.all(
      (["active", "waiting"] as const).map((status) =>
        listSessions(db, { limit: CHECKED_SESSIONS, status, all: true }),
      ),
    );
  return ((await unlessTableMissing(list)) ?? []).flat();
}

/** Missing keys of the session's main model; none if any of its models has all its keys. */
function missingFor({ config }: SessionRow, environment: Environment): string[] {
  const read = runConfigSchema.safeParse(config);
  if (!read.success) return [];
  const targets: readonly ModelTarget[] = [read.data, ...(read.data.fallback ?? [])];
  const lacking = targets.map(({ provider }) => missingVariables(provider, environment));
  return lacking.some((names) => names.length === 0) ? [] : (lacking[0] ?? []);
}
