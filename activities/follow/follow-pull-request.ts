/**
 * The activities of a follower's workflow.
 *
 * Idempotency key: the session, the number of a round, and the id of a comment. Side effects: rows and events; a message in the session's
 * queue; comments on the forge. Heartbeat: by timer. Retry class: Postgres. A forge or a remote that is away is an answer: it is looked
 * at again later. Cancel: nothing to undo.
 */
import { createHash } from "node:crypto";
import {
  sessionOfFollower,
  type EndedFollow,
  type FollowActivities,
  type FollowLook,
  type PullRequestEnd,
} from "../contract/follow.ts";
import { inScope, type ActivityScope } from "../runtime/activity-scope.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import type { ForgeRefusal } from "../forge/calls.ts";
import type { CheckFacts } from "../forge/facts.ts";
import { atPresentName } from "../forge/forges.ts";
import { appendEvents } from "../store/events.ts";
import { findSession } from "../store/sessions.ts";
import { plural } from "../text/format.ts";
import {
  addPost,
  endFollow,
  findFollow,
  listFollowRounds,
  renewFollow,
  updateFollow,
  type FollowRound,
  type FollowRow,
} from "../store/follows.ts";
import {
  pauseFollowing,
  sendFollowNotice,
  tellOfClose,
  tellOfDraft,
  tellOfForeign,
  tellOfHeldChecks,
  tellOfMerge,
  tellOfStop,
} from "./tell-people.ts";
import { awayFacts, enterFollow, isAway, isNotToBeFound, type Followed } from "./followed.ts";
import { openFollow } from "./open-follow.ts";
import { answerRounds, countReruns } from "./answers.ts";
import { readFailures, type FailureReader } from "./failures.ts";
import { readPullRequest, withFailures, type LookedAt } from "./look.ts";
import { costOfRounds, openRound, toStart, tellRound } from "./rounds.ts";
import { makeReady, readyMark, removeMergedBranch, updateBranch } from "./worker-steps.ts";
import {
  BRAKED,
  commentMark,
  decide,
  lookAfterMs,
  type FollowVerdict,
  type SeenPullRequest,
} from "./verdict.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** A forge may be away, and a token may be mended: only then it is lost. */
const LOST_MS = DAY_MS;
/** How often one that is away, or not to be found, is asked. */
const AWAY_LOOK_MS = 15 * 60_000;

export function createFollowActivities(deps: AgentDeps): FollowActivities {
  return {
    openFollow: (wants) => inScope(deps, (scope) => openFollow(deps, scope, wants)),
    lookAtPullRequest: () =>
      inScope(deps, async (scope) => withDetails(deps, scope, await lookAtPullRequest(deps, scope))),
    closeFollow: (end) =>
      inScope(deps, (scope) => closeFollow(deps, sessionOfFollower(scope.sessionId), end)),
    notifyFollow: ({ event }) => inScope(deps, (scope) => sendFollowNotice(deps, scope, event)),
  };
}

/** What the Web UI shows beside the line, unless only ids go to Temporal. */
async function withDetails(deps: AgentDeps, scope: ActivityScope, outcome: FollowLook): Promise<FollowLook> {
  const row = await findFollow(deps.store.db, sessionOfFollower(scope.sessionId));
  if (row === undefined || deps.idsOnly) return outcome;
  const rounds = `${row.rounds === 0 ? "no round" : `round ${row.rounds}`} of ${row.roundsUpTo}`;
  const next = row.nextLookAt?.toISOString().replace(/^(.{10})T(.{5}).*$/, "$1 $2 UTC");
  const then =
    outcome.kind === "over" || next === undefined ? "" : ` · looks again at ${next}, or when woken`;
  return { ...outcome, details: `**${outcome.line}**\n\n${row.url}\n\n${rounds}${then}` };
}

async function lookAtPullRequest(deps: AgentDeps, scope: ActivityScope): Promise<FollowLook> {
  const entered = await enterFollow(deps, scope);
  if (entered === undefined) return { kind: "over", end: "stopped", line: "it is not followed" };
  let followed = entered;
  const round = await openRound(followed);
  if (round !== undefined && round.starts) return toStart(followed, round.number);
  const rounds = await listFollowRounds(deps.store.db, followed.session.id);
  // What is to be answered comes before all that only looks.
  const waits = rounds.some(({ endedAt, answeredAt }) => endedAt !== null && answeredAt === null);
  const call = { ...followed.call, isLook: !waits };
  try {
    const looked = await atPresentName(call, undefined, (at) => {
      followed = { ...entered, call: { ...entered.call, forge: at.forge } };
      const rerunsOf = (head: string, check: CheckFacts) => countReruns(entered.row.posts, head, check);
      return readPullRequest({ ...followed, call: at, rounds, rerunsOf });
    });
    const { project } = followed.call.forge;
    if (project !== entered.row.project) await updateFollow(deps.store.db, entered.session.id, { project });
    if (looked.pull.state === "open") await answerRounds(followed, looked);
    if (followed.row.lostAt !== null)
      await updateFollow(deps.store.db, followed.session.id, { lostAt: null });
    return await conclude(followed, rounds, { looked, openRound: round?.number });
  } catch (error) {
    scope.signal.throwIfAborted();
    if (isNotToBeFound(error)) return lost(followed, error);
    if (isAway(error)) return away(followed, error);
    throw error;
  }
}

/** Decides, and stores what was seen and decided. */
async function conclude(
  followed: Followed,
  rounds: readonly FollowRound[],
  { looked, openRound: open }: { readonly looked: LookedAt; readonly openRound: number | undefined },
): Promise<FollowLook> {
  const { settings, pace } = followed;
  const change = await noteSeen(followed, looked);
  const counting = rounds.filter(({ number }) => number > followed.row.roundsFrom);
  const spentUsd = await costOfRounds(followed, counting);
  const standing = {
    nowMs: followed.nowMs,
    isPaused: followed.row.state === "paused",
    isBraked: followed.row.state === "paused" && followed.row.reason === BRAKED,
    calls: callsSince(rounds, followed.nowMs - HOUR_MS / pace),
    roundHead: rounds.find(({ number }) => number === open)?.head,
    works: open !== undefined || followed.works,
    isOwnDraft: followed.isOwnDraft && !followed.row.posts.includes(readyMark(followed)),
    rounds: counting.map(({ digest, head, reasons, pushed, outcome }) => ({
      digest,
      head,
      signatures: reasons.flatMap(({ kind, mark }) => (kind === "check" && mark !== undefined ? [mark] : [])),
      pushed,
      outcome,
    })),
    roundsUpTo: followed.row.roundsUpTo - followed.row.roundsFrom,
    untilMs: followed.row.until.getTime(),
    spentUsd,
    maxCostUsd: followed.row.maxCostUsd,
    quietMs: change.quietMs * pace,
  };
  let { seen } = looked;
  let verdict = decide(seen, standing, settings);
  const failures = readFailures(followed);
  // Logs are read only where something may be told because of them.
  if (verdict.kind === "round" || verdict.kind === "pause") {
    seen = await withFailures(followed, looked, failures);
    verdict = decide(seen, standing, settings);
  }
  if (verdict.kind === "go-on") {
    const row = await goOn(followed);
    return conclude({ ...followed, row }, rounds, { looked: { ...looked, seen }, openRound: open });
  }
  const lookMs = Math.ceil(
    lookAfterMs(verdict, {
      quietLooks: change.quietLooks,
      quietMs: standing.quietMs,
      settleMs: settings.settle,
    }) / pace,
  );
  // A run that was just started may not have said so yet.
  const { works } = standing;
  return apply({ ...followed, works }, { verdict, looked: { ...looked, seen }, lookMs, failures });
}

/** How often comments have called the session since then. */
const callsSince = (rounds: readonly FollowRound[], sinceMs: number): number =>
  rounds
    .filter(({ toldAt }) => toldAt.getTime() >= sinceMs)
    .reduce((sum, { reasons }) => sum + reasons.filter(({ kind }) => kind === "mention").length, 0);

/** A person wants it by a comment: what `longhaul follow` does, with the settings' bounds. */
async function goOn({ deps, session, settings, row, nowMs }: Followed): Promise<FollowRow> {
  const { rounds, days, maxCostUsd } = settings;
  return deps.store.db.transaction(async (tx) => {
    const renewed = await renewFollow(tx, session.id, { rounds, until: new Date(nowMs + days * DAY_MS) });
    if (renewed === undefined) return row;
    const { url, number, until } = renewed;
    const data = { url, number, rounds, until: until.toISOString(), maxCostUsd };
    await appendEvents(tx, session.id, session.epoch, [
      { type: "follow:started", step: session.reached, data },
    ]);
    return renewed;
  });
}

interface Decision {
  readonly verdict: Exclude<FollowVerdict, { readonly kind: "go-on" }>;
  readonly looked: LookedAt;
  readonly lookMs: number;
  readonly failures: FailureReader;
}

async function apply(
  followed: Followed,
  { verdict, looked, lookMs, failures }: Decision,
): Promise<FollowLook> {
  switch (verdict.kind) {
    case "over":
      if (verdict.end === "merged") {
        await removeMergedBranch(followed, looked);
        await tellOfMerge(followed);
      }
      if (verdict.end === "closed") await tellOfClose(followed);
      if (verdict.end === "stopped") await tellOfStop(followed, verdict.command);
      return { kind: "over", end: verdict.end, line: END_LINES[verdict.end], ...stops(followed, verdict) };
    case "round":
      return tellRound(followed, { looked, verdict, failures });
    case "pause": {
      await pauseFollowing(followed, verdict.reason);
      return { ...(await waiting(followed, lookMs, verdict.reason)), isPaused: true };
    }
    case "foreign": {
      return waiting(followed, lookMs, await tellOfForeign(followed, looked, verdict.head));
    }
    case "update":
    case "ready":
      return waiting(followed, lookMs, await doByItself(followed, verdict.kind, looked));
    case "wait": {
      await tellOfHeldChecks(followed, looked);
      return waiting(followed, lookMs, verdict.line);
    }
  }
}

/** @returns what came of it, in words: a forge that is away now is asked again by the next look */
async function doByItself(followed: Followed, what: "update" | "ready", looked: LookedAt): Promise<string> {
  try {
    if (what === "update") return await updateBranch(followed, looked);
    const why = await makeReady(followed);
    if (why === undefined) return "it is ready for review";
    await tellOfDraft(followed, why);
    return `it could not be made ready for review: ${why}`;
  } catch (error) {
    if (!isAway(error)) throw error;
    return `cannot be done now: ${awayFacts(error).why}`;
  }
}

const END_LINES = {
  merged: "it was merged",
  closed: "it was closed",
  stopped: "somebody has stopped it, by a comment or a label",
} as const;

const stops = (
  { session, works }: Followed,
  { command }: Extract<FollowVerdict, { readonly kind: "over" }>,
): { readonly stopsSession?: string } =>
  command?.wants === "stop" && works ? { stopsSession: session.id } : {};

/** A pause keeps its reason, whatever is seen meanwhile. */
async function waiting(
  { deps, session, row, nowMs }: Followed,
  lookMs: number,
  line: string,
): Promise<Extract<FollowLook, { readonly kind: "wait" }>> {
  const isPaused = row.state === "paused";
  await updateFollow(deps.store.db, session.id, {
    reason: isPaused ? row.reason : line,
    lookedAt: new Date(nowMs),
    nextLookAt: new Date(nowMs + lookMs),
  });
  return isPaused
    ? { kind: "wait", lookMs, line: row.reason ?? line, isPaused }
    : { kind: "wait", lookMs, line };
}

/** Stores what is shown of the pull request. @returns since when nothing has changed, and how often it was looked at since */
async function noteSeen(
  { deps, session, row, nowMs }: Followed,
  { pull, seen }: LookedAt,
): Promise<{ readonly quietMs: number; readonly quietLooks: number }> {
  const { head, headIs, checks, threads, openThreads, changesWantedBy, spoken, conflicts } = seen;
  const facts = {
    state: pull.state,
    isDraft: pull.isDraft,
    head,
    headIs,
    base: pull.base.branch,
    checks: checks.map(({ name, state, isRequired }) => ({ name, state, isRequired })),
    openThreads,
    unreadThreads: threads.map(({ comments }) => comments.map(commentMark).at(-1)),
    changesWantedBy,
    spoken: spoken.map(({ id }) => id),
    isOutdated: seen.isOutdated,
    conflicts: conflicts ?? null,
  };
  const digest = createHash("sha256").update(JSON.stringify(facts)).digest("hex").slice(0, 32);
  const isSame = row.digest === digest && row.changedAt !== null;
  const changedAt = isSame ? row.changedAt : new Date(nowMs);
  const quietLooks = isSame ? row.quietLooks + 1 : 0;
  await deps.store.db.transaction(async (tx) => {
    if (pull.state === "open" && !pull.isDraft) await addPost(tx, session.id, readyMark({ session }));
    await updateFollow(tx, session.id, {
      facts,
      digest,
      changedAt,
      quietLooks,
      head,
      base: pull.base.branch,
      mergeCommit: pull.mergeCommit ?? null,
    });
    if (isSame) return;
    const line = deps.sanitizer.clean(factsLine(seen));
    await appendEvents(tx, session.id, session.epoch, [
      { type: "follow:looked", step: session.reached, data: { head, line } },
    ]);
  });
  return { quietMs: nowMs - (changedAt ?? new Date(nowMs)).getTime(), quietLooks };
}

/** Such as `3 checks: 1 failed, 2 good; 1 open thread`. */
function factsLine({ pullRequest, checks, openThreads, conflicts = [] }: SeenPullRequest): string {
  const counts = Map.groupBy(checks, ({ state }) => state);
  const states = [...counts].map(([state, list]) => `${list.length} ${state}`).join(", ");
  return [
    pullRequest.state,
    ...(checks.length === 0 ? ["no checks"] : [`${plural(checks.length, "check")}: ${states}`]),
    ...(openThreads === 0 ? [] : [plural(openThreads, "open thread")]),
    ...(conflicts.length === 0 ? [] : [`${plural(conflicts.length, "file")} in conflict`]),
  ].join("; ");
}

async function lost(followed: Followed, error: ForgeRefusal): Promise<FollowLook> {
  const { deps, session, row, nowMs, pace } = followed;
  const since = row.lostAt ?? new Date(nowMs);
  await updateFollow(deps.store.db, session.id, { lostAt: since });
  const why = `the forge does not show it: ${deps.sanitizer.clean(error.message)}`;
  if (nowMs - since.getTime() >= LOST_MS / pace) return { kind: "over", end: "lost", line: why };
  return waiting(followed, Math.ceil(HOUR_MS / pace), why);
}

async function away(followed: Followed, error: Parameters<typeof awayFacts>[0]): Promise<FollowLook> {
  const { deps, pace } = followed;
  const { why, retryAfterMs = AWAY_LOOK_MS } = awayFacts(error);
  return waiting(
    followed,
    Math.ceil(retryAfterMs / pace),
    `cannot be looked at: ${deps.sanitizer.clean(why)}`,
  );
}

async function closeFollow(
  deps: AgentDeps,
  sessionId: string,
  { end, why }: { readonly end: PullRequestEnd; readonly why?: string },
): Promise<EndedFollow> {
  const { db } = deps.store;
  const [row, session] = [await findFollow(db, sessionId), await findSession(db, sessionId)];
  if (row === undefined || session === undefined) return { end, rounds: 0 };
  const rounds = await listFollowRounds(db, sessionId);
  const costs = rounds.flatMap(({ costUsd }) => costUsd ?? []);
  await db.transaction(async (tx) => {
    const cleaned = why === undefined ? undefined : deps.sanitizer.clean(why);
    if (!(await endFollow(tx, sessionId, { end, why: cleaned }))) return;
    const hours = (Date.now() - row.openedAt.getTime()) / HOUR_MS;
    const costUsd = costs.length === 0 ? null : costs.reduce((sum, usd) => sum + usd, 0);
    await appendEvents(tx, sessionId, session.epoch, [
      { type: "follow:ended", step: session.reached, data: { end, rounds: rounds.length, costUsd, hours } },
    ]);
  });
  return { end, rounds: rounds.length };
}
