/** How all commands start this machine's services. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { probeTables } from "../../temporal/probe-postgres.ts";
import { isDifferent } from "./fingerprint.ts";
import { followWorker } from "./follow-worker.ts";
import { reportingWhatStays } from "./interrupted.ts";
import {
  bringDown,
  bringUp,
  findServices,
  type LocalServices,
  type Need,
  projectHome,
  type Say,
  settingOf,
} from "./services.ts";
import { readState } from "./state.ts";
import { configuredTemporal } from "./temporal.ts";
import { describeUse, serverUse } from "./server-use.ts";
import { lackingKeys } from "./keys-needed.ts";
import { ensureWorker, environmentOf, lastWorker } from "./worker-process.ts";

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
      environment: environmentOf(services),
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
