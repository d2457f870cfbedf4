/** What every activity needs of Temporal: who it works for, a heartbeat by timer, and why it must stop. */
import { Context } from "@temporalio/activity";
import { cutChars } from "../text/cut.ts";
import type { AgentDeps } from "./deps.ts";
import { fatal } from "../contract/failures.ts";
import { startHeartbeats } from "./heartbeats.ts";
import { markedAttempt } from "./marked-attempt.ts";
import { byCode, ended, outward } from "./outward.ts";

export interface ActivityScope {
  /** The session's id is the workflow's. */
  readonly sessionId: string;
  readonly runId: string;
  readonly attempt: number;
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
  "announcements" | "heartbeatMs" | "sanitizer" | "store" | "idsOnly" | "outdated"
>;

/** While someone watches a command's output, and in the first moments of a later attempt, whose lifetime is measured. */
const BUSY_HEARTBEAT_MS = 1_000;

/**
 * Runs an activity's body. Heartbeats begin by timer, so that a quick activity sends none. An announced stop takes effect
 * at once, any other within `heartbeatMs`. Errors are masked and lose their SQL parameters before they are thrown.
 * @param maxAttempts after which a failure is final, not counting deferred attempts; default: the workflow's options
 */
export async function inScope<T>(
  deps: ScopeDeps,
  body: (scope: ActivityScope) => Promise<T>,
  maxAttempts = Infinity,
): Promise<T> {
  const context = Context.current();
  const execution = context.info.workflowExecution;
  if (!execution) throw new Error("This activity belongs to a workflow.");
  const attempt = markedAttempt(context);
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
  /** Deferred attempts do not count. */
  const tried = () => context.info.attempt - attempt.waits();
  try {
    if (tried() > maxAttempts) throw exhausted(context.info.activityType, maxAttempts);
    await attempt.begin();
    return await body({
      sessionId,
      runId: execution.runId,
      attempt: context.info.attempt,
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
    const reported = tried() >= maxAttempts ? ended(failure) : failure;
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
