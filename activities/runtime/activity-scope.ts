/** What every activity needs of Temporal: who it works for, when it reports, why it must stop, and how its errors leave it. */
import { Context, log } from "@temporalio/activity";
import { cutChars } from "../text/cut.ts";
import type { AgentDeps } from "./deps.ts";
import { fatal, rethrowIfCancelled, retryable } from "../contract/failures.ts";
import { markedAttempt } from "./lost-attempts.ts";
import { ApplicationFailure, CancelledFailure } from "@temporalio/common";
import { passesUnnamed, innermostReason } from "../contract/errors.ts";
import { databaseErrorOf } from "../store/database-error.ts";
import { hasNewerTables } from "../store/schema-version.ts";
import { SandboxLost } from "../sandbox/sandbox.ts";

export interface ActivityScope {
  /** The session's id is the workflow's. */
  readonly sessionId: string;
  readonly runId: string;
  readonly attempt: number;
  /** The same without those that were deferred: what limits count (`activities/contract/tries.ts`). */
  readonly tries: number;
  /** From the workflow's request to this attempt, by Temporal's clock, in ms. */
  readonly sinceAskedMs: number;
  /** Earlier attempts that ended with their worker, as far as heartbeats show. */
  readonly lostAttempts: number;
  /** Earlier attempts that did nothing and were deferred to a later one. */
  readonly waits: number;
  /** An earlier attempt claimed this call in the database, as far as heartbeats show. */
  readonly hadClaim: boolean;
  /**
   * Tells later attempts that this one has claimed its call. @param isOutside its effect is: resolves once Temporal knows of the claim, or
   * cannot be told, since a worker that dies before its first heartbeat would leave none
   */
  claimed(isOutside: boolean): Promise<void>;
  /** Marks this attempt as deferred: it did nothing and will be retried later. */
  waited(): void;
  /** Since this attempt began, in ms. */
  elapsedMs(): number;
  /** When the work was first scheduled, the same for each attempt. */
  readonly scheduledAtMs: number;
  /** Aborted by cancel, interrupt, pause, reset, deploy or a lost heartbeat: ask `stoppedByPerson`. */
  readonly signal: AbortSignal;
  /**
   * True if a person cancelled or interrupted: end the work and keep its result so far. False for a deploy, a pause, a reset
   * or a timeout, after which the activity is tried again.
   */
  stoppedByPerson(): boolean;
  /**
   * Rejects with the cancellation, for activities that were stopped and will be tried again. Usable in
   * a listener of `signal`, where Temporal's own `Context.current()` is not.
   */
  stopped(): Promise<never>;
  /** A note for the Web UI's pending activity, at most 200 characters. */
  note(text: string): void;
}

type ScopeDeps = Pick<
  AgentDeps,
  "announcements" | "heartbeatMs" | "sanitizer" | "store" | "suspects" | "idsOnly" | "outdated"
>;

/** While someone watches a command's output, and in the first moments of a later attempt, whose lifetime is measured. */
const BUSY_HEARTBEAT_MS = 1_000;

/**
 * Runs an activity's body. Heartbeats begin by timer, so that a quick activity sends none. An announced stop takes effect
 * at once, any other within `heartbeatMs`. Errors are masked and lose their SQL parameters before they are thrown.
 * @param maxTries after which a failure is final; default: the workflow's options
 */
export async function inScope<T>(
  deps: ScopeDeps,
  body: (scope: ActivityScope) => Promise<T>,
  maxTries = Infinity,
): Promise<T> {
  const context = Context.current();
  const execution = context.info.workflowExecution;
  if (!execution) throw new Error("This activity belongs to a workflow.");
  const attempt = markedAttempt(context, deps.suspects);
  const { announcements, heartbeatMs } = deps;
  const sessionId = execution.workflowId;
  const heartbeats = startHeartbeats(attempt.heartbeat, () =>
    attempt.isOnTrial() || announcements.isWatched(sessionId)
      ? Math.min(BUSY_HEARTBEAT_MS, heartbeatMs)
      : heartbeatMs,
  );
  const stopsHearing = [
    announcements.onStop(sessionId, heartbeats.hurry),
    announcements.onWatched(sessionId, heartbeats.hurry),
  ];
  const tried = () => context.info.attempt - attempt.waits();
  try {
    if (tried() > maxTries) throw exhausted(context.info.activityType, maxTries);
    await attempt.begin();
    return await body({
      sessionId,
      runId: execution.runId,
      attempt: context.info.attempt,
      tries: tried(),
      sinceAskedMs: context.info.currentAttemptScheduledTimestampMs - context.info.scheduledTimestampMs,
      lostAttempts: attempt.lost,
      waits: attempt.waits(),
      waited: attempt.waited,
      hadClaim: attempt.hadClaim,
      claimed: (isOutside) => attempt.claimed(isOutside),
      elapsedMs: attempt.elapsedMs,
      scheduledAtMs: context.info.scheduledTimestampMs,
      signal: context.cancellationSignal,
      stoppedByPerson: () => context.cancellationDetails?.cancelRequested === true,
      stopped: () => context.cancelled,
      note: (text) => {
        if (deps.idsOnly !== true) attempt.note(cutChars(deps.sanitizer.clean(text), 200));
      },
    });
  } catch (error) {
    attempt.ended();
    const failure = await outward(error, context.cancellationSignal, deps);
    const reported = tried() >= maxTries ? ended(failure) : failure;
    throw deps.idsOnly === true ? byCode(reported) : reported;
  } finally {
    attempt.close();
    heartbeats.end();
    for (const stopHearing of stopsHearing) stopHearing();
  }
}

/** For an activity whose earlier attempts all timed out without reporting a failure. */
const exhausted = (activity: string, attempts: number) =>
  fatal(
    "Unexpected",
    `${activity} was tried ${attempts} times, and none of its attempts ended in time. What was done before is kept: send a message to continue.`,
  );

/** The same failure, marked as not retryable. A cancellation is returned unchanged. */
function ended(failure: unknown): unknown {
  if (failure instanceof CancelledFailure || !(failure instanceof Error)) return failure;
  if (failure instanceof ApplicationFailure && failure.nonRetryable === true) return failure;
  const type = (failure instanceof ApplicationFailure ? failure.type : undefined) ?? "Unexpected";
  return ApplicationFailure.create({ type, message: failure.message, nonRetryable: true, cause: failure });
}

/** A failure without its message, which stays in the worker's log. A cancellation is returned unchanged. */
function byCode(failure: unknown): unknown {
  if (failure instanceof CancelledFailure || !(failure instanceof Error)) return failure;
  const known = failure instanceof ApplicationFailure ? failure : undefined;
  const type = known?.type ?? "Unexpected";
  log.warn("failed", { type, reason: failure.message });
  const idsOnlyFailure = ApplicationFailure.create({
    type,
    message: `${type}: see the worker's log.`,
    nonRetryable: known?.nonRetryable ?? false,
    nextRetryDelay: known?.nextRetryDelay ?? undefined,
  });
  // The stack would begin with the original failure's message.
  idsOnlyFailure.stack = "";
  return idsOnlyFailure;
}

/** A failure as it may be stored in the history: its message, its stack and its causes are cleaned. */
function cleaned(
  failure: ApplicationFailure,
  { sanitizer }: Pick<AgentDeps, "sanitizer">,
): ApplicationFailure {
  for (let error: unknown = failure; error instanceof Error; error = error.cause) {
    error.message = sanitizer.clean(error.message);
    if (error.stack !== undefined) error.stack = sanitizer.clean(error.stack);
  }
  return failure;
}

/**
 * A cancellation is returned unchanged. A failure that has a type keeps it; what is wrong with the sandbox or the database gets theirs. Any
 * other error is retried if it passes by itself, and else told at once in its own words.
 */
async function outward(
  error: unknown,
  signal: AbortSignal,
  deps: Pick<AgentDeps, "sanitizer" | "store" | "outdated">,
): Promise<unknown> {
  rethrowIfCancelled(error);
  if (error instanceof ApplicationFailure) return cleaned(error, deps);
  // Whatever an aborted call threw, it ended because of the abort; wrapped, it would count as a failure of its own.
  if (signal.aborted && signal.reason instanceof CancelledFailure) return signal.reason;
  if (error instanceof SandboxLost) {
    return retryable(
      "SandboxUnavailable",
      deps.sanitizer.clean(`${error.message} The step is tried again with a new sandbox.`),
    );
  }
  const database = databaseErrorOf(error);
  if (database?.unknownToSchema && (await hasNewerTables(deps.store.db))) {
    deps.outdated?.();
    return retryable(
      "WorkerOutdated",
      `This worker is older than the database's tables (${deps.sanitizer.clean(database.message)}), and takes no more work. Nothing of this attempt was kept; it waits for a newer worker. Replace the old ones.`,
    );
  }
  if (database) {
    const message = `Postgres: ${deps.sanitizer.clean(database.message)}. Nothing of this attempt was kept`;
    return database.final
      ? fatal("DatabaseRejected", `${message}, and trying again would not help.`)
      : retryable("DatabaseUnavailable", `${message}; it is tried again.`);
  }
  const reason = deps.sanitizer.clean(namedReason(error));
  return passesUnnamed(error)
    ? retryable("Unexpected", `${reason}. It is tried again.`)
    : fatal(
        "Unexpected",
        `${reason}. It was not tried again, because the next attempt would do the same. What was done before is kept: send a message to continue.`,
      );
}

/** With the name of an error's kind, which often says more than its words. */
function namedReason(error: unknown): string {
  const reason = innermostReason(error);
  const name = error instanceof Error ? error.name : "Error";
  return name === "Error" || reason.startsWith(name) ? reason : `${name}: ${reason}`;
}

/** The first wait after an announced stop, in ms; each further wait is twice as long, since Temporal may learn of it later than we. */
export const FIRST_LOOK_MS = 50;

export interface Heartbeats {
  /** Reports soon: a stop was announced, or there is a new note. */
  readonly hurry: () => void;
  readonly end: () => void;
}

/** @param paceMs how long to wait until the next heartbeat; called before each wait */
export function startHeartbeats(beat: () => void, paceMs: () => number): Heartbeats {
  let timer: NodeJS.Timeout;
  const next = (waitMs: number) => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      beat();
      next(Math.min(waitMs * 2, paceMs()));
    }, waitMs);
  };
  next(paceMs());
  return {
    hurry: () => next(Math.min(FIRST_LOOK_MS, paceMs())),
    end: () => clearTimeout(timer),
  };
}
