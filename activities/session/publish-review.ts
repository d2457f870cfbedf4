/**
 * Writes a session's review into the pull request, once for each head: announced as a row before, and found by its mark afterwards,
 * whatever dies in between.
 */
import { checkAnswer } from "../config/output-schema.ts";
import type { Publication } from "../contract/delivery.ts";
import { answerText } from "../contract/message.ts";
import { ForgeRefusal, type ForgeCall } from "../forge/calls.ts";
import type { PullRequestFacts } from "../forge/facts.ts";
import { atPresentName, adapterFor } from "../forge/forges.ts";
import { reviewOnce } from "../forge/post-once.ts";
import { GitFailed, runGit } from "../git/run-git.ts";
import { fetchByName } from "../git/start-point.ts";
import { hasCommit, updateMirror } from "../git/mirror.ts";
import { CredentialUnavailable } from "../git/trouble.ts";
import { announceIfInCharge, record, refuse, type Delivery } from "./publication.ts";
import { listPublications } from "../store/repositories.ts";
import { lastAnswer } from "../store/transcript.ts";
import { readReview, type Review } from "../contract/review.ts";
import { earlierFindings, reviewPlace, type ReviewPlace } from "../review/begin-review.ts";
import { composeReview, withoutLines, type ComposeFacts } from "../review/compose-review.ts";
import { diffFiles, type DiffFile } from "../review/diff-places.ts";

/** @throws RepositoryUnavailable (retryable) as long as asking again may help; Superseded (fatal) */
export async function deliverReview(delivery: Delivery): Promise<Publication> {
  const { deps, session, repository, branch, scope } = delivery;
  const { baseCommit: commit } = repository;
  if (session.config.reviews?.post !== true) return { outcome: "nothing", branch };
  const before = await listPublications(deps.store.db, session.id);
  if (before.some((row) => row.kind === "review" && row.commit === commit && row.status === "done"))
    return { outcome: "nothing", branch };
  const refuseReview = (facts: Omit<Parameters<typeof refuse>[1], "commit" | "kind">) =>
    refuse(delivery, { commit, kind: "review", ...facts });
  const review = await answeredReview(delivery);
  if (review === undefined) return refuseReview({ refused: "the last answer is not a review" });
  const wasBegun = await announceIfInCharge(delivery, { kind: "review", commit });
  try {
    const at = await reviewPlace(deps, session, scope.signal);
    return await atPresentName(at.call, undefined, (call) =>
      post(delivery, { ...at, call }, { review, wasBegun }),
    );
  } catch (error) {
    scope.signal.throwIfAborted();
    if (
      !(error instanceof ForgeRefusal || error instanceof CredentialUnavailable || error instanceof GitFailed)
    )
      throw error;
    const retryAfterMs = error instanceof ForgeRefusal ? error.retryAfterMs : undefined;
    return refuseReview({ refused: error.message, isPassing: error.isPassing, retryAfterMs });
  }
}

async function answeredReview({ deps, session }: Delivery): Promise<Review | undefined> {
  const answer = await lastAnswer(deps.store.db, session.id);
  const { outputSchema } = session.config;
  if (answer?.role !== "assistant" || outputSchema === undefined) return undefined;
  const checked = await checkAnswer(outputSchema, answerText(answer.content));
  return checked.ok ? readReview(checked.value) : undefined;
}

async function post(
  delivery: Delivery,
  at: ReviewPlace,
  { review, wasBegun }: { readonly review: Review; readonly wasBegun: boolean },
): Promise<Publication> {
  const { deps, session, repository, branch, input } = delivery;
  const { call, postKey, review: wanted } = at;
  const { baseCommit: commit } = repository;
  const forge = adapterFor(call);
  const pull = await forge.readPullRequest(call, wanted.number);
  const threads = await forge.readThreads(call, wanted.number);
  const facts: ComposeFacts = {
    kind: call.forge.kind,
    sessionId: session.id,
    commit,
    head: pull.head.commit,
    files: await placesOf(delivery, at, pull, review),
    earlier: earlierFindings(postKey, threads),
    postKey,
    onlyComment: await whyOnlyComment(call, pull, review, wanted.mayApprove),
    clean: deps.sanitizer.clean,
  };
  const composed = composeReview(review, facts);
  const posted = await reviewOnce(call, wanted.number, {
    key: postKey,
    id: `review.${pull.repositoryId}.${wanted.number}.${commit}`,
    wanted: composed.order,
    // One line that the forge does not take has it refuse all of them.
    instead: withoutLines(review, facts).order,
  });
  // Where an attempt before has written it, what it wrote is among what was told.
  const ofOthers = facts.earlier.filter(({ id }) => !id.endsWith(`.${commit}`));
  const written = posted.wasThere ? composeReview(review, { ...facts, earlier: ofOthers }) : composed;
  const isWhole = posted.wasThere || posted.order === composed.order;
  const data = {
    url: pull.url,
    number: wanted.number,
    commit,
    verdict: posted.verdict,
    comments: isWhole ? written.order.comments.length : 0,
    inSummary: isWhole ? written.inSummary : review.findings.length - written.toldBefore,
    toldBefore: written.toldBefore,
    head: pull.head.commit === commit ? undefined : pull.head.commit,
    // Another session of ours has reviewed this head.
    wasThere: posted.wasThere && !wasBegun ? (true as const) : undefined,
  };
  await record(
    delivery,
    { kind: "review", commit, url: pull.url, status: "done" },
    { type: "git:review", step: input.step, data },
  );
  return { outcome: "done", branch, commit, url: pull.url, number: wanted.number };
}

/** Forges refuse a verdict on what the same account has opened. */
async function whyOnlyComment(
  call: ForgeCall,
  { author }: PullRequestFacts,
  { verdict }: Review,
  mayApprove: boolean,
): Promise<string | undefined> {
  if (verdict === "comment") return undefined;
  if (verdict === "approve" && !mayApprove) return "review.mayApprove is not set";
  const self = await adapterFor(call).whoAmI(call);
  return self !== undefined && self.id === author?.id ? "it is of the same account" : undefined;
}

/** Where the findings may be shown. None if the worker has lost the commit, and the remote has another by now. */
async function placesOf(
  { scope, repository, session }: Delivery,
  { access, repositoryUrl: url }: ReviewPlace,
  { base }: PullRequestFacts,
  { findings }: Review,
): Promise<ReadonlyMap<string, DiffFile>> {
  const { baseCommit: to } = repository;
  const { signal } = scope;
  const mirror = await updateMirror(access, url, { signal });
  const name = session.config.repository?.ref;
  if (!(await hasCommit(access, mirror, to)) && name !== undefined)
    await fetchByName(access, mirror, { url, name, signal });
  const bases = [`refs/heads/${base.branch}`, ...(base.commit === undefined ? [] : [base.commit])];
  for (const one of bases) {
    const shared = await runGit(access, ["merge-base", one, to], { cwd: mirror });
    const from = shared.out.trim();
    if (shared.code !== 0 || from === "") continue;
    return diffFiles(access, mirror, { from, to }, new Set(findings.map(({ path }) => path)));
  }
  return new Map();
}
