/**
 * Follows a session's pull request until it is merged: looks at it, tells the session what is wrong, and waits. It holds ids and
 * counters; what is read and decided is in Postgres. The session itself has ended, and is started again for each round.
 */
import {
  ActivityFailure,
  CancellationScope,
  ChildWorkflowCancellationType,
  condition,
  continueAsNew,
  defineSignal,
  getExternalWorkflowHandle,
  isCancellation,
  ParentClosePolicy,
  setCurrentDetails,
  setHandler,
  startChild,
  workflowInfo,
} from "@temporalio/workflow";
import { WorkflowExecutionAlreadyStartedError } from "@temporalio/common";
import {
  type EndedFollow,
  type FollowLook,
  type FollowNotice,
  type FollowOrder,
  type PullRequestEnd,
  FOLLOW_SIGNALS,
} from "../activities/contract/follow.ts";
import { ownerMemo } from "../activities/contract/run-memo.ts";
import { WORKFLOW_TYPE } from "./messages.ts";
import { messageOf } from "./outcome.ts";
import { hasNewVersion, moveOn, ownVersion } from "./versions.ts";
import { boundedSummary, followActivities } from "./proxies.ts";

/** Carried from run to run of one follower. */
interface FollowSessionInput {
  /** What a person wants of it now. */
  readonly order?: FollowOrder;
  /** The run continues as new beyond this many events. Absent means when Temporal suggests it. */
  readonly maxHistoryEvents?: number;
  /** The worker version that the previous run left for another one. */
  readonly leftVersion?: string;
  readonly isPaused?: boolean;
}

const woken = defineSignal<[]>(FOLLOW_SIGNALS.woken);
const goOn = defineSignal<[FollowOrder]>(FOLLOW_SIGNALS.goOn);

/** How long an end waits for its notice. Chosen: five attempts. */
const NOTICE_MS = 30_000;

interface Follower {
  /** Somebody wants it to look now. */
  isWoken: boolean;
  order: FollowOrder | undefined;
  hasLooked: boolean;
  /** People know that only they go on. */
  isPaused: boolean;
}

/** One follower. The workflow's id is `follow:` and the session's. */
export async function followSession(input: FollowSessionInput = {}): Promise<EndedFollow> {
  const { order, maxHistoryEvents, leftVersion, isPaused = false } = input;
  const isFirst = workflowInfo().continuedFromExecutionRunId === undefined;
  const follower: Follower = {
    isWoken: false,
    order: order ?? (isFirst ? {} : undefined),
    hasLooked: !isFirst,
    isPaused,
  };
  setHandler(woken, () => void (follower.isWoken = true));
  setHandler(goOn, (followOrder) => void Object.assign(follower, { order: followOrder, isWoken: true }));
  try {
    for (;;) {
      // A turn that has begun runs to its end: a cancel takes effect between turns.
      const seen = await CancellationScope.nonCancellable(() => takeTurn(follower));
      if (seen.kind === "over")
        return await CancellationScope.nonCancellable(async () => {
          if (seen.stopsSession !== undefined) await stopSession(seen.stopsSession);
          return end(seen.end);
        });
      const isNew = hasNewVersion(leftVersion);
      if (continueDue(maxHistoryEvents) || isNew) {
        const next = {
          order: follower.order,
          isPaused: follower.isPaused,
          maxHistoryEvents,
          leftVersion: isNew ? ownVersion() : leftVersion,
        };
        return await (isNew ? moveOn<typeof followSession>(next) : continueAsNew<typeof followSession>(next));
      }
      await condition(() => follower.isWoken, seen.lookMs);
    }
  } catch (error) {
    if (isCancellation(error)) return CancellationScope.nonCancellable(() => end("stopped"));
    // What no attempt could do is told; the workflow shows it as a failure.
    if (error instanceof ActivityFailure && follower.hasLooked) await end("lost", messageOf(error));
    throw error;
  }
}

async function end(how: PullRequestEnd, why?: string): Promise<EndedFollow> {
  const ended = await followActivities.closeFollow({ end: how, why });
  await tell("follow:ended");
  return ended;
}

async function stopSession(sessionId: string): Promise<void> {
  try {
    await getExternalWorkflowHandle(sessionId).cancel();
  } catch {
    // Its run has ended by itself.
  }
}

/** A notice that nobody takes keeps nothing from going on. */
async function tell(event: FollowNotice): Promise<void> {
  let isDone = false;
  const done = () => void (isDone = true);
  void followActivities.notifyFollow({ event }).then(done, done);
  await condition(() => isDone, NOTICE_MS);
}

async function takeTurn(follower: Follower): Promise<FollowLook> {
  follower.isWoken = false;
  const { order } = follower;
  if (order !== undefined) {
    await followActivities.openFollow(order);
    if (follower.order === order) follower.order = undefined;
  }
  const seen = await followActivities.lookAtPullRequest();
  follower.hasLooked = true;
  setCurrentDetails(seen.details ?? seen.line);
  if (seen.kind === "round") await begin(follower, seen);
  const isPaused = seen.kind === "wait" && seen.isPaused === true;
  if (isPaused && !follower.isPaused) await tell("follow:paused");
  follower.isPaused = isPaused;
  return seen;
}

/** Starts the session, whose queue has the round's message; a run that is on reads it as it is. */
async function begin(
  follower: Follower,
  { sessionId, about, precedence }: Extract<FollowLook, { readonly kind: "round" }>,
): Promise<void> {
  try {
    const child = await startChild(WORKFLOW_TYPE, {
      workflowId: sessionId,
      parentClosePolicy: ParentClosePolicy.ABANDON,
      cancellationType: ChildWorkflowCancellationType.ABANDON,
      memo: ownerMemo(workflowInfo().memo),
      args: [{}],
      staticSummary: boundedSummary(about),
      priority: precedence,
    });
    const wake = () => void (follower.isWoken = true);
    child.result().then(wake, wake);
  } catch (error) {
    // A person has resumed it just now. Its end is seen by the next look.
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
  }
}

function continueDue(maxEvents: number | undefined): boolean {
  const { continueAsNewSuggested, historyLength } = workflowInfo();
  return continueAsNewSuggested || (maxEvents !== undefined && historyLength > maxEvents);
}
