/** A round of a follower: what its session is told, and what came of it. */
import { toPrecedence } from "../config/precedence.ts";
import type { FollowLook } from "../contract/follow.ts";
import { roundMessageId, toGuidanceItems } from "../contract/guidance.ts";
import { appendEvents } from "../store/events.ts";
import {
  beginRound,
  endRound,
  listFollowRounds,
  standingOfFollowed,
  type FollowRound,
} from "../store/follows.ts";
import { recoverGuidance } from "../store/guidance.ts";
import { spentUsd } from "../store/model-calls.ts";
import type { ToldReason } from "../store/schema/index.ts";
import { shorten } from "../text/cut.ts";
import { mentionName } from "./conversation.ts";
import type { Followed } from "./followed.ts";
import type { FailureReader } from "./failures.ts";
import type { LookedAt } from "./look.ts";
import { reasonLines, roundMessage } from "./round-message.ts";
import { commentMark, type FollowVerdict, type Reason } from "./verdict.ts";

/** The sender's name of a follower's messages. */
const SENDER = "follow";
const ABOUT_CHARS = 80;
const HALF_HOUR_MS = 30 * 60_000;

/** How a run may have ended and still go on with the message. */
const GOES_ON: ReadonlySet<string> = new Set(["completed", "max_steps"]);

/**
 * The round that is told and not over; one whose run has ended is closed.
 * @returns `starts`: no run has begun with it
 */
export async function openRound(
  followed: Followed,
): Promise<{ readonly number: number; readonly starts: boolean } | undefined> {
  const { deps, session, readPushes } = followed;
  const { db } = deps.store;
  const open = (await listFollowRounds(db, session.id)).find(({ endedAt }) => endedAt === null);
  if (open === undefined) return undefined;
  const { number } = open;
  const standing = await standingOfFollowed(db, session.id, roundMessageId(number));
  if (standing === undefined) return undefined;
  const { ended, endedAt, message } = standing;
  if (ended === null) return { number, starts: false };
  const hasRun = endedAt !== null && endedAt > open.toldAt;
  if (message === "waits" && (!hasRun || GOES_ON.has(ended))) return { number, starts: true };
  const outcome = message === "gone" ? "withdrawn" : ended;
  const newest = (await readPushes()).find(({ isDone, at }) => isDone && at > open.toldAt);
  const pushed = newest?.commit ?? null;
  const costUsd = Math.max(0, (await spentUsd(db, session.id)) - open.costBeforeUsd);
  await endRound(db, open, { outcome, pushed, costUsd });
  return undefined;
}

/** USD of all rounds, the open one included. */
export async function costOfRounds(
  { deps, session }: Followed,
  rounds: readonly FollowRound[],
): Promise<number> {
  const spent = rounds.some(({ costUsd }) => costUsd === null)
    ? await spentUsd(deps.store.db, session.id)
    : 0;
  return rounds.reduce(
    (sum, { costUsd, costBeforeUsd }) => sum + (costUsd ?? Math.max(0, spent - costBeforeUsd)),
    0,
  );
}

/** Stores the round, its message and its event at once: none of them without the others. */
export async function tellRound(
  followed: Followed,
  {
    looked,
    verdict,
    failures,
  }: {
    readonly looked: LookedAt;
    readonly verdict: Extract<FollowVerdict, { readonly kind: "round" }>;
    readonly failures: FailureReader;
  },
): Promise<FollowLook> {
  const { deps, session, row } = followed;
  const { db } = deps.store;
  const { reasons, digest } = verdict;
  const { head, headIs, base: baseCommit } = looked.seen;
  const number = row.rounds + 1;
  const failedChecks = reasons.flatMap((reason) => (reason.kind === "check" ? [reason.check] : []));
  const evidence = await failures.keep(number, failedChecks);
  const texts = roundMessage({
    number,
    url: row.url,
    branch: row.branch,
    head,
    base: looked.pull.base.branch,
    baseCommit,
    isOnTop: headIs === "on-top",
    reasons,
    evidence,
    canReply: session.config.noTools !== true,
  }).map(deps.sanitizer.clean);
  const parts = texts.map((text) => ({ type: "text" as const, text }));
  const items = toGuidanceItems(roundMessageId(number), parts, new Date().toISOString(), { by: SENDER });
  const costBeforeUsd = await spentUsd(db, session.id);
  const lines = reasonLines(reasons).map(deps.sanitizer.clean);
  await db.transaction(async (tx) => {
    const told = reasons.map((reason) => toTold(reason));
    const isNew = await beginRound(tx, {
      sessionId: session.id,
      number,
      head,
      digest,
      reasons: told,
      costBeforeUsd,
    });
    if (!isNew) return;
    const at = { sessionId: session.id, epoch: session.epoch, step: session.reached };
    // It is delivered by the next step: no signal comes for it.
    await recoverGuidance(tx, at, items);
    await appendEvents(tx, session.id, session.epoch, [
      { type: "follow:round", step: session.reached, data: { number, head, reasons: lines } },
    ]);
  });
  return toStart(followed, number, lines);
}

function toTold(reason: Reason): ToldReason {
  switch (reason.kind) {
    case "check":
      return { kind: "check", name: reason.check.name, mark: reason.check.signature };
    case "thread": {
      const last = reason.thread.comments.at(-1);
      return { kind: "thread", name: reason.thread.id, mark: last && commentMark(last) };
    }
    case "changes":
      return { kind: "changes", name: reason.by, mark: reason.mark };
    case "mention":
      return { kind: "mention", name: mentionName(reason.comment), mark: commentMark(reason.comment) };
    case "conflict":
      return { kind: "conflict", name: String(reason.files.length) };
  }
}

/** The session is to work on this round. */
export function toStart(
  { deps, session, pace }: Followed,
  round: number,
  lines: readonly string[] = [],
): FollowLook {
  const about = lines.length === 0 ? `round ${round}` : `round ${round}: ${lines.join("; ")}`;
  return {
    kind: "round",
    round,
    lookMs: Math.ceil(HALF_HOUR_MS / pace),
    line: shorten(about, ABOUT_CHARS),
    sessionId: session.id,
    about: deps.idsOnly === true ? `round ${round}` : shorten(about, ABOUT_CHARS),
    precedence: toPrecedence(session.config),
  };
}
