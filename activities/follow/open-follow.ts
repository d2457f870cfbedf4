/** Beginning to follow a session's pull request, and going on after a pause or an end. */
import { fatal } from "../contract/failures.ts";
import type { FollowOrder } from "../contract/follow.ts";
import type { ActivityScope } from "../runtime/activity-scope.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import { appendEvents } from "../store/events.ts";
import { beginFollow, findFollow, type FollowRow } from "../store/follows.ts";
import { setFollows } from "../store/session-settings.ts";
import { heardPosts } from "./conversation.ts";
import { requirePlace } from "./followed.ts";

const DAY_MS = 24 * 3_600_000;
/** A pull request that is opened again within this time goes on with what was left. */
const REOPENED_MS = 30 * DAY_MS;

/** @throws BadConfiguration (fatal) */
export async function openFollow(deps: AgentDeps, scope: ActivityScope, wants: FollowOrder): Promise<void> {
  const { db } = deps.store;
  const { session, forge, call, settings, number, url, branch } = await requirePlace(deps, scope);
  const before = await findFollow(db, session.id);
  const pull = await forge.readPullRequest(call, number);
  if (pull.state !== "open") {
    // The next look ends it.
    if (before?.endedAt === null) return;
    throw fatal("BadConfiguration", `The pull request ${url} is ${pull.state}: there is nothing to follow.`);
  }
  if (before?.endedAt !== null && (pull.head.branch !== branch || pull.head.isHere === false))
    throw fatal(
      "BadConfiguration",
      `The pull request ${url} is not of the branch ${branch}, to which the session ${session.id} pushes.`,
    );
  // The same whichever attempt stores it.
  const nowMs = scope.scheduledAtMs;
  const { until, roundsFrom, rounds, maxCostUsd } = leftOf(before, wants, nowMs) ?? {
    until: new Date(nowMs + (wants.days ?? settings.days) * DAY_MS),
    roundsFrom: before?.rounds ?? 0,
    rounds: wants.rounds ?? settings.rounds,
    maxCostUsd: wants.maxCostUsd ?? settings.maxCostUsd,
  };
  if (before?.state === "following" && before.until.getTime() === until.getTime()) return;
  await db.transaction(async (tx) => {
    const other = await beginFollow(tx, {
      sessionId: session.id,
      forge: call.forge.api,
      project: call.forge.project,
      number,
      url,
      branch,
      roundsFrom,
      roundsUpTo: roundsFrom + rounds,
      maxCostUsd,
      openedAt: new Date(nowMs),
      heardFrom: new Date(nowMs),
      until,
      posts: heardPosts(before?.posts ?? []),
    });
    if (other !== undefined)
      throw fatal("BadConfiguration", `${url} is followed by the session ${other} already.`);
    await setFollows(tx, session.id);
    await appendEvents(tx, session.id, session.epoch, [
      {
        type: "follow:started",
        step: session.reached,
        data: {
          url,
          number,
          rounds,
          until: until.toISOString(),
          maxCostUsd,
        },
      },
    ]);
  });
}

/** Of one that was closed and is open again: what was left, unless somebody wants more, or it is too long ago. */
function leftOf(before: FollowRow | undefined, { rounds, days, maxCostUsd }: FollowOrder, nowMs: number) {
  const wantsMore = rounds ?? days ?? maxCostUsd;
  if (before?.state !== "closed" || before.endedAt === null || wantsMore !== undefined) return undefined;
  const pausedMs = nowMs - before.endedAt.getTime();
  if (pausedMs > REOPENED_MS) return undefined;
  return {
    until: new Date(before.until.getTime() + pausedMs),
    roundsFrom: before.roundsFrom,
    rounds: before.roundsUpTo - before.roundsFrom,
    maxCostUsd: before.maxCostUsd,
  };
}
