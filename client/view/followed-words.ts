/** A followed pull request in words, and as part of a session's document. */
import type { FollowState } from "../../activities/contract/follow.ts";
import type { FollowRow, FollowRound } from "../../activities/store/follows.ts";
import { dollars, duration, plural } from "../../activities/text/format.ts";
import { harmlessLine, present, shellWord } from "../console/format.ts";
import { exitCodes, type ExitCode } from "../console/errors.ts";

/** What `status --json` says of a followed pull request; null if the session has none. */
export interface FollowStatus {
  readonly url: string;
  readonly state: FollowState;
  /** What it waits for or why it is paused, in words; null before the first look. */
  readonly reason: string | null;
  readonly head: string | null;
  readonly base: string | null;
  /** As the forge names them, with their state; null before the first look. */
  readonly checks: readonly { readonly name: string; readonly state: string }[] | null;
  readonly openThreads: number | null;
  readonly conflicts: readonly string[] | null;
  /** Messages to the session so far, and how many it may have before it is paused. */
  readonly rounds: number;
  readonly roundsUpTo: number;
  /** USD of all rounds that have ended; null if none has a price. */
  readonly costUsd: number | null;
  readonly maxCostUsd: number;
  /** ISO times. */
  readonly until: string;
  readonly lookedAt: string | null;
  readonly nextLookAt: string | null;
  readonly endedAt: string | null;
  readonly mergeCommit: string | null;
}

export function followStatus(
  row: FollowRow | undefined,
  rounds: readonly FollowRound[],
): FollowStatus | null {
  if (row === undefined) return null;
  const facts = (row.facts ?? {}) as Partial<Pick<FollowStatus, "checks" | "openThreads" | "conflicts">>;
  const costs = rounds.flatMap(({ costUsd }) => costUsd ?? []);
  return {
    url: row.url,
    state: row.state,
    reason: row.reason,
    head: row.head,
    base: row.base,
    checks: facts.checks ?? null,
    openThreads: facts.openThreads ?? null,
    conflicts: facts.conflicts ?? null,
    rounds: row.rounds,
    roundsUpTo: row.roundsUpTo,
    costUsd: costs.length === 0 ? null : costs.reduce((sum, usd) => sum + usd, 0),
    maxCostUsd: row.maxCostUsd,
    until: row.until.toISOString(),
    lookedAt: row.lookedAt?.toISOString() ?? null,
    nextLookAt: row.nextLookAt?.toISOString() ?? null,
    endedAt: row.endedAt?.toISOString() ?? null,
    mergeCommit: row.mergeCommit,
  };
}

const STATES: Readonly<Record<FollowState, string>> = {
  following: "followed",
  paused: "paused",
  merged: "merged",
  closed: "closed",
  lost: "not to be found any more",
  stopped: "not followed any more",
};

const MAX_REASON_CHARS = 160;
const MAX_CHECKS = 5;

/** The lines of `status`, without names. */
export function followLines(id: string, follow: FollowStatus, now: Date): string[] {
  const { state, reason, checks, openThreads, rounds, roundsUpTo, costUsd, nextLookAt, endedAt, head } =
    follow;
  const nextLook =
    nextLookAt === null || endedAt !== null
      ? ""
      : `, next look in ${duration(Math.max(0, Date.parse(nextLookAt) - now.getTime()))}`;
  const cost = costUsd === null ? "" : `, ${dollars(costUsd)}`;
  return present(
    `${STATES[state]}${reason === null ? "" : `: ${harmlessLine(reason, MAX_REASON_CHARS)}`}`,
    endedAt === null && `${rounds === 0 ? "no round" : `round ${rounds}`} of ${roundsUpTo}${cost}${nextLook}`,
    endedAt !== null && rounds > 0 && `${plural(rounds, "round")}${cost}`,
    endedAt === null &&
      head !== null &&
      checks !== null &&
      `head ${head.slice(0, 12)}; ${checksText(checks)}${openThreads === null || openThreads === 0 ? "" : `; ${plural(openThreads, "open thread")}`}`,
    state === "paused" && `go on: longhaul follow ${shellWord(id)}`,
  );
}

const REASONS: Readonly<Record<FollowRound["reasons"][number]["kind"], string>> = {
  check: "the check",
  thread: "the thread",
  changes: "changes wanted by",
  conflict: "a conflict in",
  mention: "the comment",
};
const MAX_NAME_CHARS = 60;

/** What a round was for, and what came of it. */
export function followRoundText({ reasons, endedAt, pushed, outcome, costUsd }: FollowRound): string {
  const why = reasons.map(({ kind, name }) => `${REASONS[kind]} ${harmlessLine(name, MAX_NAME_CHARS)}`);
  const told = why.slice(0, MAX_CHECKS).join(", ");
  const more = why.length > MAX_CHECKS ? ` and ${why.length - MAX_CHECKS} more` : "";
  const work = pushed === null ? "nothing was pushed" : `pushed ${pushed.slice(0, 12)}`;
  const end = endedAt === null ? "at work" : `${outcome ?? "ended"}, ${work}`;
  return `${told}${more}: ${end}${costUsd === null ? "" : `, ${dollars(costUsd)}`}`;
}

function checksText(checks: NonNullable<FollowStatus["checks"]>): string {
  if (checks.length === 0) return "no checks";
  const bad = checks.filter(({ state }) => state !== "good");
  if (bad.length === 0) return `${plural(checks.length, "check")} good`;
  const named = bad.slice(0, MAX_CHECKS).map(({ name, state }) => `${harmlessLine(name, 60)} ${state}`);
  const more = bad.length > named.length ? ` and ${bad.length - named.length} more` : "";
  return `${checks.length - bad.length} of ${plural(checks.length, "check")} good (${named.join(", ")}${more})`;
}

/** What `list` adds to a session's status; empty for one that is not followed. */
export const followMark = (state: FollowState | null): string =>
  state === null ? "" : `, PR ${MARKS[state]}`;

const MARKS: Readonly<Record<FollowState, string>> = {
  following: "followed",
  paused: "paused",
  merged: "merged",
  closed: "closed",
  lost: "lost",
  stopped: "open",
};

/** Of `follow --wait`. */
export const followExitCode = ({ state }: Pick<FollowRow, "state">): ExitCode =>
  ({
    following: exitCodes.waits,
    merged: exitCodes.completed,
    closed: exitCodes.failed,
    lost: exitCodes.failed,
    stopped: exitCodes.cancelled,
    paused: exitCodes.limit,
  })[state];
