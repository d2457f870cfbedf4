/** What one look reads of a followed pull request: from its forge, and from git. It decides nothing. */
import type { FollowSettings } from "../config/follow-settings.ts";
import type { ForgeCall } from "../forge/calls.ts";
import type { CheckFacts, ForgeUser, PullRequestFacts, ThreadFacts } from "../forge/facts.ts";
import type { Forge } from "../forge/forge.ts";
import { postIn } from "../forge/post-once.ts";
import { conflictsBetween, hasBase, readHeads, whoseHead, type BranchHeads } from "../git/followed-branch.ts";
import type { GitAccess } from "../git/git-access.ts";
import type { FollowRound, FollowRow } from "../store/follows.ts";
import type { BranchPush } from "../store/repositories.ts";
import { readSpoken } from "./conversation.ts";
import type { FailureReader } from "./failures.ts";
import { askTrust, type Trust } from "./trust.ts";
import {
  commentMark,
  type HeadIs,
  type SeenCheck,
  type SeenPullRequest,
  type WantedChanges,
} from "./verdict.ts";

/** After our own push the forge may show the commit before it for so long. Chosen. */
const STALE_MS = 5 * 60_000;

export interface LookFrom {
  readonly access: GitAccess;
  readonly call: ForgeCall;
  readonly forge: Forge;
  /** The repository's own address. */
  readonly repositoryUrl: string;
  readonly number: number;
  readonly settings: FollowSettings;
  /** Read after the branch, as a push is announced before it is made. */
  readonly readPushes: () => Promise<readonly BranchPush[]>;
  readonly row: FollowRow;
  readonly rounds: readonly FollowRound[];
  readonly postKey: string;
  readonly rerunsOf: (head: string, check: CheckFacts) => number;
  readonly nowMs: number;
}

export interface LookedAt {
  readonly pull: PullRequestFacts;
  readonly seen: SeenPullRequest;
  /** The newest commits, as git has them. Undefined unless it is open. */
  readonly heads: BranchHeads | undefined;
  /** The newest commit that the session has pushed. */
  readonly ownCommit: string | undefined;
}

/** @throws ForgeRefusal, GitFailed */
export async function readPullRequest(from: LookFrom): Promise<LookedAt> {
  const { access, call, forge, repositoryUrl, number, settings, nowMs } = from;
  const pull = await forge.readPullRequest(call, number);
  const nothing = { pull, seen: seenOf(pull, pull.head.commit), heads: undefined, ownCommit: undefined };
  if (pull.state !== "open") return nothing;
  const trust = askTrust(from);
  const spoken = await readSpoken(from, trust);
  const heads = await readHeads(access, repositoryUrl, {
    branch: pull.head.branch,
    base: pull.base.branch,
    signal: call.signal,
  });
  const own = (await from.readPushes()).filter(({ isRefused }) => !isRefused);
  const newest = own.find(({ isDone }) => isDone);
  const ownCommit = newest?.commit;
  const isFresh = newest !== undefined && nowMs - newest.at.getTime() < STALE_MS;
  const isStale = isFresh && heads.head === newest.commit && pull.head.commit !== newest.commit;
  const headIs: HeadIs = isStale ? "stale" : await whoseHead(access, heads, own);
  const seen: SeenPullRequest = {
    ...seenOf(pull, heads.head ?? pull.head.commit),
    headIs,
    spoken,
    base: heads.base,
    conflicts: await conflictsBetween(access, heads),
  };
  if (headIs === "stale" || headIs === "gone") return { ...nothing, seen, heads, ownCommit };
  const checks = settings.checks === "none" ? [] : await forge.readChecks(call, pull);
  const withReruns = checks.map((check) => ({ ...check, reruns: from.rerunsOf(seen.head, check) }));
  const reviews =
    settings.reviews === "none"
      ? { threads: [], changesWantedBy: [], openThreads: 0 }
      : await readReviews(from, trust);
  const isOutdated = await isBehind(from, pull, { heads, seen });
  return { pull, seen: { ...seen, checks: withReruns, ...reviews, isOutdated }, heads, ownCommit };
}

const seenOf = (pullRequest: PullRequestFacts, head: string): SeenPullRequest => ({
  pullRequest,
  head,
  headIs: "ours",
  checks: [],
  threads: [],
  changesWantedBy: [],
  spoken: [],
  openThreads: 0,
  isOutdated: false,
  base: undefined,
  conflicts: undefined,
});

/** Whether it lacks commits of its base that the base's rules demand. Asked only where something follows from it. */
async function isBehind(
  { access, call, forge, settings }: LookFrom,
  pull: PullRequestFacts,
  { heads, seen }: { readonly heads: BranchHeads; readonly seen: SeenPullRequest },
): Promise<boolean> {
  if (settings.update !== "required" || seen.headIs !== "ours" || seen.conflicts?.length !== 0) return false;
  if (await hasBase(access, heads)) return false;
  return (await forge.demandsNewestBase(call, pull)) === true;
}

/** Threads and reviews of people who may, as far as the session was not told of them. */
async function readReviews(from: LookFrom, { mayReview }: Trust) {
  const { call, forge, number, rounds } = from;
  const [threads, reviews] = [await forge.readThreads(call, number), await forge.readReviews(call, number)];
  const told = new Set(
    rounds.flatMap(({ reasons }) =>
      // A thread's own id may change with the code below it; its comments' do not.
      reasons.map(({ kind, name, mark }) =>
        kind === "thread" ? `thread ${mark}` : `${kind} ${name} ${mark}`,
      ),
    ),
  );
  const open = threads.filter(({ isResolved }) => isResolved !== true);
  const unread: ThreadFacts[] = [];
  for (const thread of open) {
    const last = thread.comments.at(-1);
    // By its mark, not by its author: the token may be a reviewer's own.
    if (last === undefined || postIn(from.postKey, last.text) !== undefined) continue;
    if (told.has(`thread ${commentMark(last)}`)) continue;
    if (await mayReview(last.author)) unread.push(thread);
  }
  const changesWantedBy: WantedChanges[] = [];
  for (const { id, author, verdict } of newestByPerson(reviews)) {
    if (verdict !== "changes-requested" || author === undefined) continue;
    const { login } = author;
    // By the review: it stays what it is, whichever commit it was of and whatever is pushed after it.
    const mark = `review ${id}`;
    if (told.has(`changes ${login} ${mark}`) || !(await mayReview(author))) continue;
    changesWantedBy.push({ login, mark });
  }
  return { threads: unread, changesWantedBy, openThreads: open.length };
}

/** A comment alone takes nothing back. */
function newestByPerson<Review extends { readonly author: ForgeUser | undefined; readonly verdict: string }>(
  reviews: readonly Review[],
): Review[] {
  const byId = new Map<number, Review>();
  for (const review of reviews)
    if (review.author !== undefined && review.verdict !== "commented") byId.set(review.author.id, review);
  return [...byId.values()];
}

/** Adds to each failed check its signature, and whether the base fails in the same way. */
export async function withFailures(
  { call, forge }: Pick<LookFrom, "call" | "forge">,
  { pull, seen }: LookedAt,
  failures: FailureReader,
): Promise<SeenPullRequest> {
  const failed = seen.checks.filter(({ state }) => state === "failed");
  if (failed.length === 0) return seen;
  const names = failed.map(({ name }) => name);
  const ofBase = await forge.readBaseChecks(call, pull, names);
  const checks: SeenCheck[] = [];
  for (const check of seen.checks) {
    if (check.state !== "failed") {
      checks.push(check);
      continue;
    }
    const { signature } = await failures.read(check);
    const onBase = ofBase.find(({ name, state }) => name === check.name && state === "failed");
    const isOfBase = onBase !== undefined && (await failures.read(onBase)).signature === signature;
    checks.push({ ...check, signature, isOfBase });
  }
  return { ...seen, checks };
}
