/** What follows from what a forge says about a followed pull request: one table, in order; the first line that applies counts. */
import { createHash } from "node:crypto";
import type { FollowSettings } from "../config/follow-settings.ts";
import type { PullRequestEnd } from "../contract/follow.ts";
import { plural } from "../text/format.ts";
import type { SpokenComment } from "./conversation.ts";
import type { CheckFacts, CommentFacts, PullRequestFacts, ThreadFacts } from "../forge/facts.ts";

/** A check, and what is known of its failure. */
export interface SeenCheck extends CheckFacts {
  /** Equal for equal failures, whatever the commit; undefined unless it failed. */
  readonly signature?: string | undefined;
  /** It fails on the base, too, and in the same way: it is not the session's. */
  readonly isOfBase?: boolean;
  /** How often it was run again on this commit, because the session wanted that. */
  readonly reruns?: number;
}

/**
 * Whose the newest commit is. `ours`: the session pushed it, or it is a clean merge of the base onto such a one. `stale`: the forge still
 * shows what was there before our push. `on-top`: somebody has added commits to ours. `rewritten`: ours are not part of it. `gone`: the
 * branch was deleted.
 */
export type HeadIs = "ours" | "stale" | "on-top" | "rewritten" | "gone";

/** One review that wants changes. */
export interface WantedChanges {
  readonly login: string;
  /** The review's own, whatever is pushed after it: a review is told once. */
  readonly mark: string;
}

/** What one look has read. */
export interface SeenPullRequest {
  readonly pullRequest: Pick<PullRequestFacts, "state" | "isDraft" | "labels"> & {
    readonly isQueued?: boolean | undefined;
  };
  readonly head: string;
  readonly headIs: HeadIs;
  readonly checks: readonly SeenCheck[];
  /** Threads whose last word is a trusted person's that the session was not told of. */
  readonly threads: readonly ThreadFacts[];
  /** All that are not resolved, whoever has the last word. */
  readonly openThreads: number;
  /** It lacks commits of its base, and the base's rules demand them. */
  readonly isOutdated: boolean;
  /** Comments of people who may, to the agent, that were not heard. */
  readonly spoken: readonly SpokenComment[];
  /** Who wants changes, in reviews that the session was not told of. */
  readonly changesWantedBy: readonly WantedChanges[];
  /** The base's commit, and the files that conflict with it; undefined if that is not known. */
  readonly base: string | undefined;
  readonly conflicts: readonly string[] | undefined;
}

/** A round that was told. */
export interface ToldRound {
  readonly digest: string;
  readonly head: string;
  readonly signatures: readonly string[];
  /** The commit that the session pushed in it; null if none. */
  readonly pushed: string | null;
  /** How the session's run ended; null while it works. */
  readonly outcome: string | null;
}

/** Where the follower stands. */
export interface Standing {
  readonly nowMs: number;
  readonly isPaused: boolean;
  /** It is paused because it was called too often. */
  readonly isBraked: boolean;
  /** How often it was called by comments within the last hour. */
  readonly calls: number;
  /** The commit of the round that the session works on. */
  readonly roundHead: string | undefined;
  /** The session's run is on, with a round or with what somebody else wants of it. */
  readonly works: boolean;
  /** The session opened it as a draft, and it was one ever since. */
  readonly isOwnDraft: boolean;
  /** Oldest first. */
  readonly rounds: readonly ToldRound[];
  readonly roundsUpTo: number;
  readonly untilMs: number;
  readonly spentUsd: number;
  readonly maxCostUsd: number;
  /** Since something has changed. */
  readonly quietMs: number;
}

export type Reason =
  | { readonly kind: "check"; readonly check: SeenCheck }
  | { readonly kind: "thread"; readonly thread: ThreadFacts }
  | { readonly kind: "changes"; readonly by: string; readonly mark: string }
  | { readonly kind: "conflict"; readonly files: readonly string[] }
  | { readonly kind: "mention"; readonly comment: SpokenComment };

export type FollowVerdict =
  | {
      readonly kind: "over";
      readonly end: Extract<PullRequestEnd, "merged" | "closed" | "stopped">;
      /** The comment that ends it. */
      readonly command?: SpokenComment;
    }
  | { readonly kind: "foreign"; readonly head: Exclude<HeadIs, "ours" | "stale"> }
  | {
      readonly kind: "wait";
      readonly for: "checks" | "quiet" | "session" | "people" | "push";
      readonly line: string;
    }
  | { readonly kind: "round"; readonly reasons: readonly Reason[]; readonly digest: string }
  | { readonly kind: "pause"; readonly reason: string }
  /** The worker merges the base into it. */
  | { readonly kind: "update" }
  /** The session's own draft can be reviewed. */
  | { readonly kind: "ready" }
  /** A person wants it to go on: all bounds count from now on. */
  | { readonly kind: "go-on" };

/** A pull request with this label is not followed. */
const STOP_LABEL = "longhaul:stop";
/** How long a review or a conflict that is there already waits for checks that still run. Chosen. */
const MOST_PATIENCE_MS = 10 * 60_000;
/** The same failure so often ends the rounds. Chosen. */
const MOST_REPEATS = 3;
/** So many calls within an hour are no people's any more: two programs answer each other. Source of the number: chosen, for people. */
const MOST_CALLS = 20;
const DAYS_OVER = "its days are over";
/** Only the command `continue`, or the command line, ends this pause. */
export const BRAKED = `it was called ${MOST_CALLS} times within an hour`;

export function decide(seen: SeenPullRequest, standing: Standing, settings: FollowSettings): FollowVerdict {
  const { pullRequest, headIs } = seen;
  if (pullRequest.state !== "open") return { kind: "over", end: pullRequest.state };
  if (pullRequest.labels.includes(STOP_LABEL)) return { kind: "over", end: "stopped" };
  const command = commandIn(seen.spoken);
  if (command !== undefined) return { kind: "over", end: "stopped", command };
  if (headIs === "stale") return wait("push", "the forge does not show the newest push yet");
  // A person has sent the session there.
  if (standing.works && headIs === "on-top" && standing.roundHead === seen.head)
    return wait("session", "the session works");
  const isCalled = seen.spoken.length > 0 && (!standing.isBraked || isContinued(seen));
  const goesOnTop = settings.onForeignPush === "merge" || isCalled;
  if (headIs !== "ours" && !(headIs === "on-top" && goesOnTop)) return { kind: "foreign", head: headIs };
  if (standing.works) return wait("session", "the session works");
  if (pullRequest.isQueued === true) return wait("people", "it is in the merge queue");
  if (pullRequest.isDraft && !standing.isOwnDraft && !isCalled)
    return wait("people", "somebody has made it a draft");
  if (standing.isPaused && !isCalled) return wait("people", "following is paused");
  return decideRound(seen, standing, settings);
}

function decideRound(seen: SeenPullRequest, standing: Standing, settings: FollowSettings): FollowVerdict {
  const checks = countingChecks(seen.checks, settings.checks);
  const reasons = reasonsIn(seen, checks, settings);
  const running = checks.filter(({ state }) => state === "running");
  const waitsMs = standing.quietMs;
  const isReview = reasons.some(({ kind }) => kind !== "check");
  if (running.length > 0 && !(isReview && waitsMs >= MOST_PATIENCE_MS))
    return wait("checks", `checks run: ${namesOf(running)}`);
  if (reasons.length === 0) return decideRest(seen, { standing, settings, checks });
  if (waitsMs < settings.settle) return wait("quiet", "something has just changed");
  const digest = digestOf(seen, reasons);
  const isCalled = seen.spoken.length > 0;
  if (isCalled && standing.calls >= MOST_CALLS && !isContinued(seen))
    return { kind: "pause", reason: BRAKED };
  if (standing.isPaused) return { kind: "go-on" };
  const reason = whyPaused(reasons, digest, standing);
  if (reason === undefined) return { kind: "round", reasons, digest };
  return isCalled ? { kind: "go-on" } : { kind: "pause", reason };
}

/** Nothing is wrong: what the worker does by itself. */
function decideRest(
  seen: SeenPullRequest,
  {
    standing,
    settings,
    checks,
  }: {
    readonly standing: Standing;
    readonly settings: FollowSettings;
    readonly checks: readonly SeenCheck[];
  },
): FollowVerdict {
  if (standing.nowMs >= standing.untilMs && !standing.isPaused) return { kind: "pause", reason: DAYS_OVER };
  const isGreen = checks.every(({ state }) => state === "good");
  const isOwnDraft = seen.pullRequest.isDraft && standing.isOwnDraft;
  const updates = settings.update === "required" && seen.isOutdated;
  const readies = settings.ready && isOwnDraft && isGreen && seen.openThreads === 0;
  if (!updates && !readies) return wait("people", standingLine(checks));
  if (standing.quietMs < settings.settle) return wait("quiet", "something has just changed");
  return updates ? { kind: "update" } : { kind: "ready" };
}

const isContinued = ({ spoken }: SeenPullRequest): boolean =>
  spoken.some(({ wants }) => wants === "continue");

/** Of several, the one that ends more. */
const commandIn = (spoken: readonly SpokenComment[]): SpokenComment | undefined =>
  spoken.find(({ wants }) => wants === "stop") ?? spoken.find(({ wants }) => wants === "forget");

const wait = (what: Extract<FollowVerdict, { kind: "wait" }>["for"], line: string): FollowVerdict => ({
  kind: "wait",
  for: what,
  line,
});

/** Those that the branch requires; where it requires none, or the forge does not say, all. */
export function countingChecks(
  checks: readonly SeenCheck[],
  which: FollowSettings["checks"],
): readonly SeenCheck[] {
  if (which === "none") return [];
  const required = checks.filter(({ isRequired }) => isRequired === true);
  return which === "required" && required.length > 0 ? required : checks;
}

/** Checks that wait for a person: told once, and never a round. */
export const heldChecks = (checks: readonly SeenCheck[]): readonly SeenCheck[] =>
  checks.filter(({ state, isRequired }) => state === "held" || (state === "stopped" && isRequired === true));

function reasonsIn(
  seen: SeenPullRequest,
  checks: readonly SeenCheck[],
  { update }: Pick<FollowSettings, "update">,
): Reason[] {
  const { threads, changesWantedBy } = seen;
  const conflicts = update === "never" ? [] : (seen.conflicts ?? []);
  return [
    ...checks
      .filter(({ state, isOfBase }) => state === "failed" && isOfBase !== true)
      .map((check) => ({ kind: "check" as const, check })),
    ...threads.map((thread) => ({ kind: "thread" as const, thread })),
    ...seen.spoken.map((comment) => ({ kind: "mention" as const, comment })),
    ...changesWantedBy.map(({ login: by, mark }) => ({ kind: "changes" as const, by, mark })),
    ...(conflicts.length > 0 ? [{ kind: "conflict" as const, files: conflicts }] : []),
  ];
}

/** A comment as it is now. By its text: forges change the time of one that nobody has edited, as when the code below it moves. */
export const commentMark = ({ id, text }: Pick<CommentFacts, "id" | "text">): string =>
  `${id} ${createHash("sha256").update(text).digest("hex").slice(0, 16)}`;

/** Of what is told: a fact on the same commits is the same. */
function digestOf({ head, base }: SeenPullRequest, reasons: readonly Reason[]): string {
  const facts = reasons.map((reason) => {
    switch (reason.kind) {
      case "check":
        return ["check", reason.check.name, head, reason.check.reruns ?? 0];
      case "thread": {
        const last = reason.thread.comments.at(-1);
        return ["thread", last && commentMark(last)];
      }
      case "changes":
        return ["changes", reason.by, reason.mark];
      case "mention":
        return ["mention", reason.comment.id];
      case "conflict":
        return ["conflict", head, base];
    }
  });
  return createHash("sha256").update(JSON.stringify(facts)).digest("hex").slice(0, 16);
}

const failureSignatures = (reasons: readonly Reason[]): string[] =>
  reasons.flatMap((reason) => (reason.kind === "check" ? (reason.check.signature ?? reason.check.name) : []));

/** @returns undefined if the session may be told */
function whyPaused(reasons: readonly Reason[], digest: string, standing: Standing): string | undefined {
  const { rounds, roundsUpTo, untilMs, nowMs, spentUsd, maxCostUsd } = standing;
  const last = rounds.at(-1);
  if (last?.outcome !== undefined && last.outcome !== null && last.outcome !== "completed")
    return `the session's run in the last round ended as ${last.outcome}`;
  if (last !== undefined && last.pushed === null && last.digest === digest)
    return "the session has ended the last round without a push, and nothing has changed since";
  const repeated = failureSignatures(reasons).find(
    (signature) => repeats(rounds, signature) + 1 >= MOST_REPEATS,
  );
  if (repeated !== undefined) return `the same failure for the third time: ${repeated}`;
  if (rounds.length + doubled(rounds) >= roundsUpTo)
    return `its ${plural(roundsUpTo, "round")} ${roundsUpTo === 1 ? "is" : "are"} used`;
  if (nowMs >= untilMs) return DAYS_OVER;
  if (spentUsd >= maxCostUsd) return `its rounds have cost ${spentUsd.toFixed(2)} USD`;
  return undefined;
}

/** In how many rounds in a row, up to now, a failure was told and something was pushed because of it. */
function repeats(rounds: readonly ToldRound[], signature: string): number {
  const index = rounds.findLastIndex(({ signatures }) => !signatures.includes(signature));
  return rounds.length - 1 - index;
}

/** Rounds that count twice: they told what the round before had told, though it had changed something. */
const doubled = (rounds: readonly ToldRound[]): number =>
  rounds.filter(({ signatures }, index) => {
    const before = rounds[index - 1];
    return (
      before !== undefined &&
      before.pushed !== null &&
      signatures.some((one) => before.signatures.includes(one))
    );
  }).length;

const MAX_NAMES = 5;

function namesOf(checks: readonly SeenCheck[]): string {
  const names = checks.slice(0, MAX_NAMES).map(({ name }) => name);
  return checks.length > names.length
    ? `${names.join(", ")} and ${checks.length - names.length} more`
    : names.join(", ");
}

function standingLine(checks: readonly SeenCheck[]): string {
  const waiting = heldChecks(checks);
  if (waiting.length > 0) return `waits for a person: ${namesOf(waiting)}`;
  const notOurs = checks.filter(({ isOfBase }) => isOfBase === true);
  if (notOurs.length > 0) return `fails on the base, too: ${namesOf(notOurs)}`;
  const missing = checks.filter(({ state }) => state === "missing");
  if (missing.length > 0) return `has not reported: ${namesOf(missing)}`;
  return checks.length === 0 ? "it can be reviewed" : "its checks are green";
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** After our own push. Chosen. */
const AFTER_PUSH_MS = MINUTE_MS;

/** When it is looked at again. @param quietLooks looks since something has changed */
export function lookAfterMs(
  verdict: FollowVerdict,
  {
    quietLooks,
    quietMs,
    settleMs,
  }: { readonly quietLooks: number; readonly quietMs: number; readonly settleMs: number },
): number {
  const doubling = (firstMs: number, mostMs: number) =>
    Math.min(mostMs, firstMs * 2 ** Math.min(quietLooks, 30));
  if (verdict.kind === "wait" && verdict.for === "checks") return doubling(MINUTE_MS / 2, 15 * MINUTE_MS);
  if (verdict.kind === "wait" && verdict.for === "quiet") return Math.max(1_000, settleMs - quietMs);
  const isPush = verdict.kind === "update" || verdict.kind === "ready";
  if (isPush || (verdict.kind === "wait" && verdict.for === "push")) return AFTER_PUSH_MS;
  // Its end wakes the follower; this is for one that nobody has told.
  if (verdict.kind === "round" || (verdict.kind === "wait" && verdict.for === "session")) return HOUR_MS / 2;
  return doubling(15 * MINUTE_MS, 6 * HOUR_MS);
}
