/**
 * Attempts that ended with their worker: a process that died or froze reports nothing, so the attempt after it reads what
 * the last one left in its heartbeat. Work that kills one worker after the other is not retried forever.
 *
 * The first attempt leaves no mark: an ordinary loss is the worker's, and the next attempt continues. From the second attempt
 * on, each records in its heartbeats that it runs and for how long, and at last that it ended in good order.
 */
import { fatal } from "../contract/failures.ts";
import { setTimeout as sleep } from "node:timers/promises";
import type { Context } from "@temporalio/activity";
import { defaultPayloadConverter } from "@temporalio/common";

/** What a second or later attempt of an activity leaves to the next attempt. */
export interface AttemptMark {
  readonly attempt: number;
  /** How long it has run, in ms, by its own clock. */
  readonly lifeMs: number;
  readonly losses: Losses;
  /** `ended`: whatever its outcome, its worker survived the attempt. */
  readonly state: "running" | "ended";
  /** Attempts that were deferred and did nothing: they do not count as failed. */
  readonly waits?: number;
  /** For people, in the Web UI. */
  readonly note?: string;
  /** It claimed its call in the database, or an attempt before it did: a row that does not say so is older. */
  readonly claimed?: true;
}

/** Marked attempts in a row that were lost with their worker, the first attempt not counted. */
export interface Losses {
  /** How many of them, counted from the newest, were lost within QUICK_LOSS_MS. */
  readonly quick: number;
  readonly total: number;
}

export const NO_LOSSES: Losses = { quick: 0, total: 0 };

/**
 * An attempt that is lost within this counts against the work, in ms. Chosen: work that kills its worker does so within
 * moments when it is retried, since the model's answer and the tool's output are there already; a worker that is killed from
 * outside while it follows a long command lives longer (the soak kills one every 50 s, a deploy drains for 10 s).
 */
const QUICK_LOSS_MS = 5_000;
/** For this long a later attempt often reports how long it has run. Source: a heartbeat after QUICK_LOSS_MS is sure to come. */
const TRIAL_MS = QUICK_LOSS_MS * 2;
/** Source: one lost worker is an accident; two more, each within moments of starting the same work, are the work's fault. */
const MAX_QUICK_LOSSES = 2;
/** However long each attempt ran. Chosen: more than any chaos test kills under one command, a sixth of a tool call's attempts. */
const MAX_LOSSES = 10;

/** The losses among earlier attempts. @param details of the last heartbeat that the server has */
export function lossesBefore(attempt: number, details: unknown): Losses {
  const mark = asMark(details);
  if (mark === undefined || mark.attempt >= attempt || mark.state === "ended") return NO_LOSSES;
  const quick = mark.lifeMs <= QUICK_LOSS_MS ? mark.losses.quick + 1 : 0;
  return { quick, total: mark.losses.total + 1 };
}

/** How many attempts before this one were deferred. @param details of the last heartbeat that the server has */
function waitsBefore(attempt: number, details: unknown): number {
  return Math.min(attempt - 1, asMark(details)?.waits ?? 0);
}

/** Whether an attempt before this one claimed its call. @param details of the last heartbeat that the server has */
function claimedBefore(details: unknown): boolean {
  return typeof details === "object" && details !== null && "claimed" in details && details.claimed === true;
}

/** @throws PoisonedSession (fatal) if too many workers were lost with this very activity */
function refuseWhatKillsWorkers({ quick, total }: Losses, activity: string): void {
  if (quick < MAX_QUICK_LOSSES && total < MAX_LOSSES) return;
  throw fatal(
    "PoisonedSession",
    `After the first attempt at ${activity}, ${total} workers in a row were lost while they ran it${
      quick > 0 ? `, the last ${quick} within ${QUICK_LOSS_MS / 1_000} s of taking it over` : ""
    }. It is not given to another worker. The conversation and the files are kept as last saved. See the workers' logs for why they ended (memory, a crash); then send a message to continue without this call.`,
  );
}

function asMark(details: unknown): AttemptMark | undefined {
  if (typeof details !== "object" || details === null) return undefined;
  const { attempt, lifeMs, losses, state, waits } = details as Partial<AttemptMark>;
  if (typeof attempt !== "number" || typeof lifeMs !== "number" || state === undefined) return undefined;
  if (typeof losses?.quick !== "number" || typeof losses.total !== "number") return undefined;
  return { attempt, lifeMs, losses, state, waits: typeof waits === "number" ? waits : undefined };
}

/**
 * Runs attempts that may kill their worker one after the other, so that no two of them start at the same time: the next loss
 * then shows which one is to blame, and not work that merely shared a worker with it.
 */
export class Suspects {
  #last: Promise<void> = Promise.resolve();

  /**
   * Resolves when it is this attempt's turn.
   * @returns a function that ends its turn, which also ends by itself after QUICK_LOSS_MS
   * @throws what `cancelled` rejects with
   */
  async turn(cancelled: () => Promise<never>): Promise<() => void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const before = this.#last;
    this.#last = before.then(() => promise);
    try {
      await Promise.race([before, cancelled()]);
    } catch (error) {
      resolve();
      throw error;
    }
    const timer = setTimeout(resolve, QUICK_LOSS_MS);
    return () => {
      clearTimeout(timer);
      resolve();
    };
  }
}

/**
 * The current attempt's heartbeats, and the mark that they leave to the next attempt.
 * @param suspects of this worker
 */
export function markedAttempt(context: Context, suspects: Suspects) {
  const { info, heartbeat, cancelled } = context;
  const startedAt = performance.now();
  const elapsedMs = () => performance.now() - startedAt;
  const losses = lossesBefore(info.attempt, info.heartbeatDetails);
  let runsSince = startedAt;
  let state: AttemptMark["state"] = "running";
  let waits = waitsBefore(info.attempt, info.heartbeatDetails);
  let awaitsTurn = false;
  let note: string | undefined;
  const hadClaim = claimedBefore(info.heartbeatDetails);
  let hasClaim = hadClaim;
  let endTurn: (() => void) | undefined;
  const mark = (): AttemptMark => {
    const lifeMs = Math.round(performance.now() - runsSince);
    return { attempt: info.attempt, lifeMs, losses, state, waits: waits || undefined, ...details() };
  };
  const details = () => ({
    note,
    claimed: hasClaim ? (true as const) : undefined,
  });
  const beat = () => {
    if (info.attempt === 1 && waits === 0) heartbeat(hasClaim ? details() : note);
    // This attempt has begun nothing, so the last attempt's mark still holds.
    else heartbeat(awaitsTurn ? info.heartbeatDetails : mark());
  };
  return {
    elapsedMs,
    lost: losses.total,
    waits: () => waits,
    /** The attempt did nothing and will be retried later. */
    waited: () => void (waits += 1),
    heartbeat: beat,
    /** Whether the attempt's lifetime says something about the work. */
    isOnTrial: () => info.attempt > 1 && performance.now() - runsSince < TRIAL_MS,
    note: (text: string) => (note = text),
    hadClaim,
    async claimed(isOutside: boolean) {
      hasClaim = true;
      if (isOutside) await leave(context, info.attempt === 1 && waits === 0 ? details() : mark());
    },
    /** @throws PoisonedSession (fatal), or the cancellation while it waits */
    async begin() {
      if (info.attempt === 1) return;
      refuseWhatKillsWorkers(losses, info.activityType);
      if (losses.quick > 0) {
        awaitsTurn = true;
        endTurn = await suspects.turn(() => cancelled);
        awaitsTurn = false;
        runsSince = performance.now();
      }
      await leave(context, mark());
    },
    /** The attempt ended in good order, whatever it throws: Temporal's SDK sends this before the failure. */
    ended() {
      state = "ended";
      if ((info.attempt > 1 || waits > 0 || hasClaim) && !awaitsTurn) beat();
    },
    close: () => endTurn?.(),
  };
}

/** How long a mark may take to arrive, in ms: work does not wait while Temporal is unreachable. */
const MARK_MS = 1_000;

/**
 * Leaves a mark before the work begins, which may end this process or stop its thread at once. A heartbeat of the SDK takes
 * some ms to arrive, and the SDK does not report when it has; so this one is sent by the client.
 */
async function leave(context: Context, mark: object): Promise<void> {
  const client = clientOf(context);
  if (client === undefined) return context.heartbeat(mark);
  const { namespace, taskToken } = context.info;
  const details = { payloads: [defaultPayloadConverter.toPayload(mark)] };
  const sent = client.workflowService.recordActivityTaskHeartbeat({ namespace, taskToken, details }).then(
    () => undefined,
    () => context.heartbeat(mark),
  );
  await Promise.race([sent, sleep(MARK_MS, undefined, { ref: false })]);
}

/** Undefined in a test's own environment, where asking for it throws. */
function clientOf(context: Context): Context["client"] | undefined {
  try {
    return context.client;
  } catch {
    return undefined;
  }
}
