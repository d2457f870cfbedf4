/**
 * The services of a session's sandbox, such as a database: started with each start of it, before its set-up's commands and before a
 * tool gets it. What the session must know of them is told at a step's boundary, and in events, by which the next worker knows what
 * was told.
 */
import { log } from "@temporalio/activity";
import { reasonOf } from "../contract/errors.ts";
import { fatal, superseded } from "../contract/failures.ts";
import { sandboxServices } from "../config/service-settings.ts";
import type { AgentDeps, WorkspaceDeps } from "../runtime/deps.ts";
import type { ServiceCalls, ServiceRestart } from "../tools/tool.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import type { ServiceHost, ServiceHome } from "../sandbox/service-host.ts";
import { shareWork, type SharedWork } from "../sandbox/shared-work.ts";
import type { Queryable } from "../store/db.ts";
import type { NewEvent } from "../store/event.ts";
import { appendEvents } from "../store/events.ts";
import { addNotice } from "../store/sandboxes.ts";
import { knownServices, type KnownService } from "../store/services.ts";
import type { Session } from "../store/sessions.ts";
import { lockRunAlone } from "../store/session-locks.ts";
import { cutTail, shorten } from "../text/cut.ts";
import { startAgain, startServices, type ServiceOutcome, type StartOfServices } from "./start-services.ts";
import type { SessionSandboxes } from "./session-sandbox.ts";

type ServiceDeps = WorkspaceDeps & Pick<AgentDeps, "sanitizer">;

export type SessionServices = ReturnType<typeof createSessionServices>;

interface Entry {
  readonly home: ServiceHome;
  readonly work: SharedWork<void>;
  isStarted: boolean;
}

const LOG_LINES = 20;
const MAX_LOG_CHARS = 4_000;
/** Of a log in a failure, which has at most 1,000 characters. */
const MAX_FAILURE_LOG_CHARS = 600;
const MAX_WHY_CHARS = 400;

export function createSessionServices(deps: ServiceDeps) {
  /** By session: the sandbox beside which this worker has started its services, or starts them. */
  const bySession = new Map<string, Entry>();

  async function ensure(
    session: Session,
    sandbox: Sandbox,
    step: number,
    signal?: AbortSignal,
  ): Promise<void> {
    const job = jobOf(deps, session, sandbox, step);
    if (job === undefined) return;
    const { home } = job;
    const before = bySession.get(session.id);
    if (before !== undefined && isSameHome(before.home, home) && before.work.canJoin)
      return before.work.join(signal);
    const work = shareWork((stop) => startAll(deps, job, stop));
    const entry: Entry = { home, work, isStarted: false };
    bySession.set(session.id, entry);
    try {
      await work.join(signal);
      entry.isStarted = true;
    } catch (error) {
      if (bySession.get(session.id) === entry) bySession.delete(session.id);
      throw error;
    }
  }

  return {
    /**
     * Returns when the services of this start of the sandbox work, or when it is known which of them do not. Idempotent; several
     * callers wait for one start. Before the plan of a planning session is approved, none is started.
     * @throws ServiceFailed (fatal) before the first step, if one does not work; ImageMissing, SandboxRefused (fatal)
     */
    ensure,
    /** Tells the session of services that have ended since they were started by this worker. Never rejects. */
    async look(session: Session, step: number): Promise<void> {
      const entry = bySession.get(session.id);
      const host = deps.sandboxHost.services;
      if (entry?.isStarted !== true || host === undefined) return;
      try {
        const isWhole = await tellEnded(deps, { session, step, host, home: entry.home });
        // One whose container was removed is made again for the next call.
        if (!isWhole && bySession.get(session.id) === entry) bySession.delete(session.id);
      } catch (error) {
        log.warn("the services of a session could not be looked at", { reason: reasonOf(error) });
      }
    },
    /** What a tool call may ask; undefined for a session without services. @param open the session's sandbox */
    ofCall(
      session: Session,
      step: number,
      open: () => Promise<Sandbox>,
      signal: AbortSignal,
    ): ServiceCalls | undefined {
      const again = async () => {
        bySession.delete(session.id);
        await ensure(session, await open(), step, signal);
      };
      return serviceCalls(deps, { session, step, open, signal, again });
    },
    /** Forgets what this worker knows, when the session's sandbox is gone. */
    forget(sessionId: string): void {
      bySession.delete(sessionId);
    },
  };
}

interface CallingSession {
  readonly session: Session;
  readonly step: number;
  readonly open: () => Promise<Sandbox>;
  readonly signal: AbortSignal;
  /** Starts the session's services anew. */
  readonly again: () => Promise<void>;
}

function serviceCalls(
  deps: ServiceDeps,
  { session, step, open, signal, again }: CallingSession,
): ServiceCalls | undefined {
  const names = Object.keys(sandboxServices(session.config.sandbox));
  if (names.length === 0) return undefined;
  return {
    names,
    async log(name) {
      const job = jobOf(deps, session, await open(), step);
      return job?.host.log(job.home, name);
    },
    async restart(name) {
      const job = jobOf(deps, session, await open(), step);
      if (job === undefined) return { text: "No service runs while the session plans.", works: false };
      const restarted = await startAgain(startOf(deps, job, signal), name);
      if (restarted !== undefined) return restartText(deps, restarted);
      await again();
      return { text: `The container of ${name} was gone, so it was made again.`, works: true };
    },
  };
}

/** The same sandboxes, each with its services before a caller gets it. */
export function withRunningServices(
  sandboxes: SessionSandboxes,
  services: SessionServices,
): SessionSandboxes {
  return {
    ...sandboxes,
    async open(session, step, signal) {
      const opened = await sandboxes.open(session, step, signal);
      await services.ensure(session, opened.sandbox, step, signal);
      return opened;
    },
    forget(sessionId) {
      services.forget(sessionId);
      sandboxes.forget(sessionId);
    },
  };
}

const isSameHome = (left: ServiceHome, right: ServiceHome): boolean =>
  left.container === right.container && left.boot === right.boot;

interface Job {
  readonly session: Session;
  readonly sandbox: Sandbox;
  readonly step: number;
  readonly host: ServiceHost;
  readonly home: ServiceHome;
}

/** Undefined if the session has no services, or none yet. @throws SandboxRefused (fatal) if this host has none */
function jobOf(deps: ServiceDeps, session: Session, sandbox: Sandbox, step: number): Job | undefined {
  const { config, id } = session;
  if (Object.keys(sandboxServices(config.sandbox)).length === 0 || config.plan === true) return undefined;
  const host = deps.sandboxHost.services;
  if (host === undefined)
    throw fatal(
      "SandboxRefused",
      "sandbox.services is set, and this worker's sandboxes have no services; nothing was run.",
    );
  const { container, boot } = sandbox.identity;
  return {
    session,
    sandbox,
    step,
    host,
    home: { sessionId: id, container, boot, runtime: config.sandbox.runtime },
  };
}

function startOf(
  { store: { db } }: ServiceDeps,
  { session, sandbox, step, host, home }: Job,
  signal: AbortSignal,
  known: readonly KnownService[] = [],
): StartOfServices {
  const tell = (event: NewEvent) => appendEvents(db, session.id, session.epoch, [event]);
  return {
    host,
    home,
    sandbox,
    services: sandboxServices(session.config.sandbox),
    signal,
    known,
    onStarted: (data) => tell({ type: "service:started", step, data }),
    onHealthy: (data) => tell({ type: "service:healthy", step, data }),
  };
}

async function startAll(deps: ServiceDeps, job: Job, signal: AbortSignal): Promise<void> {
  const { session, step } = job;
  const known = await knownServices(deps.store.db, session.id);
  const outcomes = await startServices(startOf(deps, job, signal, known));
  const failed = outcomes
    .filter((outcome) => outcome.failed !== undefined)
    .map((outcome) => cleanFailure(deps, outcome));
  await tellStarted(deps, job, { known, outcomes, failed });
  const [first] = failed;
  if (first !== undefined && step <= 1) throw fatal("ServiceFailed", failureText(first));
  await tellEnded(deps, job);
}

interface FailedService {
  readonly name: string;
  readonly why: string;
  readonly log: string;
  readonly container: string | undefined;
}

function cleanFailure(
  { sanitizer }: ServiceDeps,
  { name, container, failed }: ServiceOutcome,
): FailedService {
  const { why = "", log: text = "" } = failed ?? {};
  return {
    name,
    container,
    why: shorten(sanitizer.clean(why), MAX_WHY_CHARS),
    log: cutTail(sanitizer.clean(text), MAX_LOG_CHARS),
  };
}

const failureText = ({ name, why, log: text }: FailedService): string =>
  `The service ${name} does not work, so nothing was asked of a model: ${why}. ` +
  `Correct sandbox.services.${name} and start again, or leave it out.${text === "" ? "" : ` The end of its log:\n${cutTail(text, MAX_FAILURE_LOG_CHARS)}`}`;

interface StartedAll {
  readonly known: readonly KnownService[];
  readonly outcomes: readonly ServiceOutcome[];
  readonly failed: readonly FailedService[];
}

/** What the model must know after a start of the services that was not their first, and of those that do not work. */
async function tellStarted(
  deps: ServiceDeps,
  job: Job,
  { known, outcomes, failed }: StartedAll,
): Promise<void> {
  const { session, step } = job;
  const services = sandboxServices(session.config.sandbox);
  const again = outcomes.filter(
    ({ name, container, wasStarted }) =>
      wasStarted === true &&
      known.some((service) => service.name === name && service.container !== container),
  );
  const isKept = ({ name }: ServiceOutcome) => services[name]?.data === "kept";
  const emptied = again.filter((outcome) => !isKept(outcome)).map(({ name }) => name);
  const unchanged = again.filter(isKept).map(({ name }) => name);
  if (again.length === 0 && failed.length === 0) return;
  await inRun(deps, session, async (tx) => {
    await appendEvents(tx, session.id, session.epoch, [
      ...emptied.map((name): NewEvent => {
        const container = known.findLast((service) => service.name === name)?.container ?? "";
        const why = "it was started again in a new sandbox, and its data is fresh: it begins empty";
        return { type: "service:lost", step, data: { name, why, container } };
      }),
      ...failed.map((data): NewEvent => ({ type: "service:failed", step, data })),
    ]);
    if (step <= 1 && failed.length > 0) return;
    if (again.length > 0) await addNotice(tx, session.id, againNotice(emptied, unchanged));
    for (const service of failed) await addNotice(tx, session.id, failedNotice(service));
  });
}

function againNotice(emptied: readonly string[], unchanged: readonly string[]): string {
  const parts = [
    emptied.length === 0
      ? ""
      : ` What was in ${emptied.join(" and ")} is gone: fill it again if you need it.`,
    unchanged.length === 0
      ? ""
      : ` ${unchanged.join(" and ")} still ${unchanged.length === 1 ? "has its" : "have their"} data, as the latest steps left it.`,
  ];
  return `[The services were started again, with the sandbox.${parts.join("")}]`;
}

const failedNotice = ({ name, why, log: text }: FailedService): string =>
  `[The service ${name} does not work: ${why}.${quoted(text)} restart_service starts it again.]`;

const quoted = (text: string): string => (text === "" ? "" : `\nThe end of its log:\n${text}\n`);

/** Runs `body` in a transaction if this run still has the session. @throws Superseded (fatal) */
async function inRun(
  { store }: ServiceDeps,
  session: Session,
  body: (tx: Queryable) => Promise<void>,
): Promise<void> {
  await store.db.transaction(async (tx) => {
    if (!(await lockRunAlone(tx, session.id, session.runId ?? "")))
      throw superseded("its services were left as they are");
    await body(tx);
  });
}

/**
 * Tells of services that were started and do not run any more, each once.
 * @returns false if the container of one is gone
 */
async function tellEnded(
  deps: ServiceDeps,
  { session, step, host, home }: Pick<Job, "session" | "step" | "host" | "home">,
): Promise<boolean> {
  const names = Object.keys(sandboxServices(session.config.sandbox));
  const states = await host.states(home);
  const down = names.filter((name) => states.find((state) => state.name === name)?.status !== "running");
  if (down.length === 0) return true;
  const ends = await Promise.all(
    down.map(async (name) => {
      const state = states.find((one) => one.name === name);
      const text = state === undefined ? undefined : await host.log(home, name, LOG_LINES);
      const why = state === undefined ? "its container was removed" : (state.ending ?? "it does not run");
      return { name, why, log: cutTail(deps.sanitizer.clean(text ?? "").trimEnd(), MAX_LOG_CHARS) };
    }),
  );
  await inRun(deps, session, async (tx) => {
    // Read after the lock: another worker may have told it meanwhile.
    const known = await knownServices(tx, session.id);
    for (const end of ends) {
      const latest = known.findLast((service) => service.name === end.name);
      if (latest === undefined || latest.last === "failed" || latest.last === "lost") continue;
      const { container } = latest;
      await appendEvents(tx, session.id, session.epoch, [
        { type: "service:lost", step, data: { ...end, container } },
      ]);
      await addNotice(tx, session.id, lostNotice(end));
    }
  });
  return down.every((name) => states.some((state) => state.name === name));
}

const lostNotice = ({ name, why, log: text }: Pick<FailedService, "name" | "why" | "log">): string =>
  `[The service ${name} does not run any more: ${why}.${quoted(text)} restart_service starts it again.]`;

function restartText(deps: ServiceDeps, outcome: ServiceOutcome): ServiceRestart {
  if (outcome.failed === undefined)
    return { text: `The service ${outcome.name} was started again, and works.`, works: true };
  const { name, why, log: text } = cleanFailure(deps, outcome);
  return {
    text: `The service ${name} was started again and does not work: ${why}.${quoted(text)}`,
    works: false,
  };
}
