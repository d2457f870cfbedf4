/** Starts the services of one sandbox in their service, and waits until each is healthy. */
import { setTimeout as sleep } from "node:timers/promises";
import { ApplicationFailure } from "@temporalio/common";
import { startOrder, portCollisions, type ServicesSettings } from "../config/service-settings.ts";
import type { FailureType } from "../contract/failures.ts";
import { portsSource } from "../sandbox/agent/sources.ts";
import { program, readEnd, runOwn } from "../sandbox/own-command.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import type { ServiceHost, ServiceSpec, ServiceHome, ServiceState } from "../sandbox/service-host.ts";
import type { KnownService } from "../store/services.ts";
import { randomUUID } from "node:crypto";

/** Source: repositories' initial scripts and settings are a few KB. */
const MAX_FILE_BYTES = 1024 * 1024;
const LOG_LINES = 20;
const PORTS_TIMEOUT_MS = 15_000;
/** The first pause between two looks; each is twice as long as the one before, up to the health test's interval. */
const FIRST_PAUSE_MS = 100;
/** A service without a test and without ports counts as healthy if it still runs after this long. Chosen: time to read its settings. */
const SETTLED_MS = 500;

/** What is started, and where. */
export interface StartOfServices {
  readonly host: ServiceHost;
  readonly home: ServiceHome;
  readonly sandbox: Sandbox;
  readonly services: ServicesSettings;
  readonly signal: AbortSignal;
  /** What the session's events say of earlier containers, oldest first. */
  readonly known: readonly KnownService[];
  readonly onStarted: (service: {
    name: string;
    image: string;
    container: string;
    ms: number;
  }) => Promise<void>;
  readonly onHealthy: (service: { name: string; container: string; ms: number }) => Promise<void>;
}

export interface ServiceOutcome {
  readonly name: string;
  readonly container?: string | undefined;
  /** It was started just now. */
  readonly wasStarted?: boolean;
  /** Why it does not work. */
  readonly failed?: { readonly why: string; readonly log: string };
}

/** @throws what the host throws; the signal's reason */
export async function startServices(start: StartOfServices): Promise<readonly ServiceOutcome[]> {
  const { services } = start;
  const names = startOrder(services) ?? Object.keys(services);
  const specs = names.map((name, at): ServiceSpec => {
    const settings = services[name];
    if (settings === undefined) throw new Error(`There is no service ${name}.`);
    return { name, settings, position: at };
  });
  const before = await start.host.states(start.home);
  const prepared = await Promise.all(specs.map((one) => prepare(start, one, before)));
  const collisions = portCollisions(prepared.map(({ service: { name }, ports }) => ({ name, ports })));
  // Nothing is started if one of them cannot be.
  const isPossible = prepared.every(({ trouble }) => trouble === undefined) && collisions.length === 0;
  if (!isPossible)
    return prepared.flatMap(({ service: { name }, trouble }): ServiceOutcome[] => {
      const collision = collisions.find(({ second }) => second === name);
      const why =
        trouble ??
        (collision &&
          `${collision.port} is the port of ${collision.first} too, and all services share one localhost`);
      return why === undefined ? [] : [{ name, failed: { why, log: "" } }];
    });
  const runs = new Map<
    string,
    { readonly started: Promise<ServiceOutcome>; readonly healthy: Promise<ServiceOutcome> }
  >();
  for (const one of prepared) {
    const { name } = one.service;
    const started = waitForOthers(one.service, runs).then(
      (trouble): Promise<ServiceOutcome> | ServiceOutcome =>
        trouble === undefined ? startOne(start, one) : { name, failed: { why: trouble, log: "" } },
    );
    const healthy = started.then((outcome) =>
      outcome.failed === undefined ? waitHealthy(start, one, outcome) : outcome,
    );
    runs.set(name, { started, healthy });
  }
  const settled = await Promise.allSettled([...runs.values()].map(({ healthy }) => healthy));
  const broken = settled.find((result) => result.status === "rejected");
  if (broken !== undefined) throw broken.reason;
  return settled.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
}

interface Prepared {
  readonly service: ServiceSpec;
  readonly ports: readonly number[];
  readonly files: Readonly<Record<string, Uint8Array>>;
  readonly state: ServiceState | undefined;
  /** Why it cannot be started. */
  readonly trouble: string | undefined;
}

async function prepare(
  { host, sandbox, signal }: StartOfServices,
  service: ServiceSpec,
  before: readonly ServiceState[],
): Promise<Prepared> {
  const { settings } = service;
  const state = before.find(({ name }) => name === service.name);
  if (state !== undefined && state.status !== "created")
    return { service, ports: settings.ports, files: {}, state, trouble: undefined };
  try {
    const declared = await host.image(service, signal);
    const ports = settings.ports.length > 0 ? settings.ports : declared;
    const read = await readFiles(sandbox, settings.files);
    return typeof read === "string"
      ? { service, ports, files: {}, state, trouble: read }
      : { service, ports, files: read, state, trouble: undefined };
  } catch (error) {
    if (!isImageMissing(error)) throw error;
    return { service, ports: [], files: {}, state, trouble: error.message };
  }
}

const isImageMissing = (error: unknown): error is ApplicationFailure =>
  error instanceof ApplicationFailure && error.type === ("ImageMissing" satisfies FailureType);

/** The workspace's files by their paths in the service; or why one cannot be read. A link is followed inside the workspace only. */
async function readFiles(
  sandbox: Sandbox,
  files: Readonly<Record<string, string>>,
): Promise<Readonly<Record<string, Uint8Array>> | string> {
  const read: Record<string, Uint8Array> = {};
  for (const [from, to] of Object.entries(files)) {
    const answer = await sandbox.files.read(from, { maxBytes: MAX_FILE_BYTES });
    if (!answer.ok) return `files: ${answer.message}`;
    if (answer.size > MAX_FILE_BYTES)
      return `files: ${from} has ${answer.size} bytes, and a service's file at most 1 MiB`;
    read[to] = answer.bytes;
  }
  return read;
}

/** @returns why the service cannot be started: one that it depends on does not work */
async function waitForOthers(
  { settings }: ServiceSpec,
  runs: ReadonlyMap<
    string,
    { readonly started: Promise<ServiceOutcome>; readonly healthy: Promise<ServiceOutcome> }
  >,
): Promise<string | undefined> {
  for (const [other, condition] of Object.entries(settings.dependsOn)) {
    const outcome = await runs.get(other)?.[condition];
    if (outcome?.failed !== undefined) return `it was not started, because ${other} failed`;
  }
  return undefined;
}

async function startOne(
  start: StartOfServices,
  { service, ports, files, state }: Prepared,
): Promise<ServiceOutcome> {
  const { host, home, known, onStarted } = start;
  const { name, settings } = service;
  const startMs = performance.now();
  const trouble =
    state === undefined || state.status === "created" ? await portTaken(start, name, ports) : undefined;
  if (trouble !== undefined) return { name, failed: { why: trouble, log: "" } };
  const started = await host.start(home, service, async () => files);
  if ("failed" in started) return { name, failed: { why: started.failed, log: "" } };
  const { container, wasStarted } = started;
  // The worker that started it may have died before it could say so.
  if (wasStarted || !known.some((service) => service.container === container)) {
    const ms = Math.round(performance.now() - startMs);
    await onStarted({ name, image: settings.image, container, ms });
  }
  return { name, container, wasStarted };
}

/** @returns what listens on one of the ports already */
async function portTaken(
  { sandbox, services }: StartOfServices,
  service: string,
  ports: readonly number[],
): Promise<string | undefined> {
  if (ports.length === 0) return undefined;
  const listener = (await listeners(sandbox)).find(({ port }) => ports.includes(port));
  if (listener === undefined) return undefined;
  const { port, pid, process: program_ } = listener;
  const other = Object.entries(services).find(
    ([name, { ports: its }]) => name !== service && its.includes(port),
  )?.[0];
  const by =
    pid === null
      ? (other ?? "another service or program of the sandbox")
      : `the process ${pid} (${program_ ?? "?"}) in the sandbox; end it, or let it use another port`;
  return `its port ${port} is taken by ${by}`;
}

interface Listener {
  readonly port: number;
  readonly pid: number | null;
  readonly process: string | null;
}

/** All that listens in the sandbox's network namespace: its services, too. */
async function listeners(sandbox: Sandbox): Promise<readonly Listener[]> {
  const { env, ...command } = program("LONGHAUL_PORTS", portsSource);
  const state = await runOwn(sandbox, {
    id: `ports-${randomUUID()}`,
    ...command,
    env: { ...env, LONGHAUL_PORTS_OF: "all" },
    timeoutMs: PORTS_TIMEOUT_MS,
  });
  const end = await readEnd(sandbox, state);
  return "out" in end ? (JSON.parse(end.out) as Listener[]) : [];
}

async function waitHealthy(
  start: StartOfServices,
  prepared: Prepared,
  outcome: ServiceOutcome,
): Promise<ServiceOutcome> {
  const { host, home, known, signal, onHealthy } = start;
  const { service } = prepared;
  const { interval, timeout } = service.settings.health;
  const { container = "" } = outcome;
  const last = known.findLast((service) => service.container === container)?.last;
  // Told already, or healthy in an earlier attempt: what became of it since is looked at between the steps.
  if (outcome.wasStarted !== true && last !== undefined && last !== "started") return outcome;
  const startMs = performance.now();
  let pauseMs = FIRST_PAUSE_MS;
  for (;;) {
    const why = await whyNotHealthy(start, prepared, performance.now() - startMs);
    const ms = Math.round(performance.now() - startMs);
    if (why === undefined) {
      await onHealthy({ name: service.name, container, ms });
      return outcome;
    }
    if (why.isOver || ms >= timeout) {
      const late = `it was not healthy after ${timeout / 1_000} s: ${why.text}`;
      const log = (await host.log(home, service.name, LOG_LINES)) ?? "";
      return { ...outcome, failed: { why: why.isOver ? why.text : late, log: log.trimEnd() } };
    }
    await sleep(Math.min(pauseMs, interval, Math.max(1, timeout - ms)), undefined, { signal });
    pauseMs *= 2;
  }
}

/** @returns undefined if it is healthy; `isOver` if it will not become so */
async function whyNotHealthy(
  { host, home, sandbox }: StartOfServices,
  { service, ports }: Prepared,
  sinceMs: number,
): Promise<{ readonly text: string; readonly isOver: boolean } | undefined> {
  const state = (await host.states(home)).find(({ name }) => name === service.name);
  if (state === undefined) return { text: "its container was removed", isOver: true };
  if (state.status === "ended") return { text: state.ending ?? "it ended", isOver: true };
  const answer = await host.test(home, service);
  if (answer === "passed") return undefined;
  if (answer !== "none") return { text: answer.failed, isOver: false };
  if (ports.length === 0)
    return sinceMs >= SETTLED_MS ? undefined : { text: "it has just been started", isOver: false };
  const open = new Set((await listeners(sandbox)).map(({ port }) => port));
  // An image may declare ports that it uses only with other settings.
  const isUp =
    service.settings.ports.length > 0
      ? ports.every((port) => open.has(port))
      : ports.some((port) => open.has(port));
  return isUp
    ? undefined
    : {
        text: `nothing listens on port ${ports.filter((port) => !open.has(port)).join(", ")}`,
        isOver: false,
      };
}

/** Starts one service again, with the data that it has. @returns undefined if its container is gone */
export async function startAgain(start: StartOfServices, name: string): Promise<ServiceOutcome | undefined> {
  const { host, home, onStarted } = start;
  const settings = start.services[name];
  if (settings === undefined) throw new Error(`There is no service ${name}.`);
  const startMs = performance.now();
  const service = { name, settings, position: 0 };
  const state = (await host.states(home)).find((service) => service.name === name);
  if (state === undefined) return undefined;
  const ports = settings.ports.length > 0 ? settings.ports : await host.image(service, start.signal);
  const trouble = state.status === "running" ? undefined : await portTaken(start, name, ports);
  if (trouble !== undefined) return { name, container: state.container, failed: { why: trouble, log: "" } };
  if (!(await host.restart(home, name))) return undefined;
  const ms = Math.round(performance.now() - startMs);
  const { container } = state;
  await onStarted({ name, image: settings.image, container, ms });
  const prepared = { service, ports, files: {}, state, trouble: undefined };
  return waitHealthy(start, prepared, { name, container, wasStarted: true });
}
