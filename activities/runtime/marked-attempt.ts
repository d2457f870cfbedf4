/** An activity's attempt as the next attempt finds it: its heartbeats carry the mark of lost-attempts.ts. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Context } from "@temporalio/activity";
import { defaultPayloadConverter } from "@temporalio/common";
import {
  claimedBefore,
  lossesBefore,
  TRIAL_MS,
  waitsBefore,
  refuseWhatKillsWorkers,
  suspects,
  type AttemptMark,
} from "./lost-attempts.ts";

/** The current attempt's heartbeats, and the mark that they leave to the next attempt. */
export function markedAttempt(context: Context) {
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
    return { attempt: info.attempt, lifeMs, losses, state, ...(waits === 0 ? {} : { waits }), ...said() };
  };
  const said = () => ({
    ...(note === undefined ? {} : { note }),
    ...(hasClaim ? { claimed: true as const } : {}),
  });
  const beat = () => {
    if (info.attempt === 1 && waits === 0) heartbeat(hasClaim ? said() : note);
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
      if (isOutside) await leave(context, info.attempt === 1 && waits === 0 ? said() : mark());
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
