/** What a session answers in the threads of a round, or wants of its checks: kept by its calls, and done when its work is pushed. */
import { createHash } from "node:crypto";
import { postOnce, replyOnce, postIn } from "../forge/post-once.ts";
import { harmlessPost } from "../forge/harmless-post.ts";
import type { CheckFacts, ThreadFacts } from "../forge/facts.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import { appendEvents } from "../store/events.ts";
import {
  addPost,
  listFollowRounds,
  listReplies,
  saveReply,
  setAnswered,
  type FollowReplyRow,
  type FollowRound,
} from "../store/follows.ts";
import type { ToldReason } from "../store/schema/index.ts";
import type { Session } from "../store/sessions.ts";
import { cutChars } from "../text/cut.ts";
import { inWords } from "../text/format.ts";
import type { FollowCalls } from "../tools/tool.ts";
import type { Followed } from "./followed.ts";
import type { LookedAt } from "./look.ts";
import { commentMark } from "./verdict.ts";

/** For a session's calls. */
export function followCalls(
  { store, sanitizer }: Pick<AgentDeps, "store" | "sanitizer">,
  { id }: Pick<Session, "id">,
  { epoch, step, index }: { readonly epoch: number; readonly step: number; readonly index: number },
): FollowCalls {
  return {
    async keep({ kind, target, text, outcome }) {
      const open = (await listFollowRounds(store.db, id)).find(({ endedAt }) => endedAt === null);
      if (open === undefined) return "No round of following a pull request is open: nothing was kept.";
      const isOfKind = (one: ToldReason) =>
        one.kind === kind || (kind === "thread" && one.kind === "mention");
      const known = open.reasons.filter(isOfKind).map(({ name }) => name);
      if (!known.includes(target)) {
        const what = kind === "thread" ? "thread" : "failed check";
        return known.length === 0
          ? `This round has no ${what}.`
          : `This round has no such ${what}. It has: ${inWords(known)}.`;
      }
      const row = { sessionId: id, round: open.number, kind, target, outcome, epoch, step, callIndex: index };
      await saveReply(store.db, { ...row, text: sanitizer.clean(text) });
      return undefined;
    },
  };
}

/**
 * Does what the rounds that are over wanted. Of a round that failed, or whose push was refused, nothing is written.
 * @throws ForgeRefusal: what was done is known, and not done again
 */
export async function answerRounds(followed: Followed, looked: LookedAt): Promise<void> {
  const { deps, session } = followed;
  const { db } = deps.store;
  for (const round of await listFollowRounds(db, session.id)) {
    if (round.endedAt === null || round.answeredAt !== null) continue;
    const answered = (await mayAnswer(followed, round)) ? await answer(followed, looked, round) : 0;
    await db.transaction(async (tx) => {
      await setAnswered(tx, round);
      if (answered > 0)
        await appendEvents(tx, session.id, session.epoch, [
          { type: "follow:answered", step: session.reached, data: { threads: answered } },
        ]);
    });
  }
}

async function mayAnswer({ readPushes }: Followed, round: FollowRound): Promise<boolean> {
  // What a run says that did not come to its end is no answer, also if it has pushed.
  if (round.outcome !== "completed") return false;
  if (round.pushed !== null) return true;
  return !(await readPushes()).some(({ isRefused, at }) => isRefused && at > round.toldAt);
}

/** @returns in how many threads something was written */
async function answer(followed: Followed, looked: LookedAt, round: FollowRound): Promise<number> {
  const { deps, forge, call, row } = followed;
  const replies = await listReplies(deps.store.db, round);
  const inThreads = replies.filter(({ kind }) => kind === "thread");
  const isInThread = inThreads.some((reply) => !isMention(round, reply));
  const threads = isInThread ? await forge.readThreads(call, row.number) : [];
  for (const reply of inThreads) {
    if (isMention(round, reply)) {
      await postOnce(call, row.number, replyPost(followed, round, reply));
      continue;
    }
    const mark = markOfThread(round, reply.target);
    // A thread's own id may have changed with the push; its comments' have not.
    const thread =
      threads.find(({ comments }) => comments.some(({ id }) => mark?.startsWith(`${id} `) === true)) ??
      threads.find(({ id }) => id === reply.target);
    if (thread !== undefined) await answerThread(followed, round, { reply, thread, mark });
  }
  if (round.pushed === null) await rerun(followed, looked, replies);
  else await askAgain(followed, round);
  return inThreads.length;
}

/** Of the conversation, where an answer is one more comment. */
const isMention = ({ reasons }: FollowRound, { target }: FollowReplyRow): boolean =>
  reasons.some(({ kind, name }) => kind === "mention" && name === target);

const replyPost = (
  { deps, session, postKey }: Followed,
  round: FollowRound,
  { target, text }: FollowReplyRow,
) => ({
  key: postKey,
  id: `${session.id}.reply-${round.number}-${shortHash(target)}`,
  text: harmlessPost(deps.sanitizer.clean(text)),
  since: round.toldAt,
});

/** The comment that the session was told last. */
const markOfThread = ({ reasons }: FollowRound, thread: string): string | undefined =>
  reasons.find(({ kind, name }) => kind === "thread" && name === thread)?.mark;

async function answerThread(
  followed: Followed,
  round: FollowRound,
  {
    reply,
    thread,
    mark,
  }: { readonly reply: FollowReplyRow; readonly thread: ThreadFacts; readonly mark: string | undefined },
): Promise<void> {
  const { forge, call, row, settings, postKey } = followed;
  const isFixed = reply.outcome === "fixed" && round.pushed !== null;
  await replyOnce(call, row.number, thread.id, replyPost(followed, round, reply));
  const last = thread.comments.findLast(({ text }) => postIn(postKey, text) === undefined);
  // Whoever has spoken since was not answered.
  const isUnchanged = last !== undefined && commentMark(last) === mark;
  if (isFixed && isUnchanged && settings.resolve === "fixed" && thread.isResolved !== true)
    await forge.resolveThread(call, row.number, thread.id);
}

/** Each check so often on one commit; a push runs them anyway. */
async function rerun(
  followed: Followed,
  { seen }: LookedAt,
  replies: readonly FollowReplyRow[],
): Promise<void> {
  const { deps, session, forge, call, row, settings } = followed;
  for (const { kind, target } of replies) {
    const check = seen.checks.find(({ name, state }) => name === target && state === "failed");
    if (kind !== "check" || check === undefined) continue;
    const before = countReruns(row.posts, seen.head, check);
    if (before >= settings.rerun) continue;
    const did = await forge.rerunCheck(call, check);
    if (did.done) await addPost(deps.store.db, session.id, rerunId(seen.head, check, before + 1));
  }
}

const rerunId = (head: string, { name }: Pick<CheckFacts, "name">, number: number): string =>
  `${rerunPrefix(head, name)}${number}`;

/** How often a check was run again on this commit. @param posts of the follower's row */
export const countReruns = (
  posts: readonly string[],
  head: string,
  { name }: Pick<CheckFacts, "name">,
): number => posts.filter((post) => post.startsWith(rerunPrefix(head, name))).length;

const rerunPrefix = (head: string, name: string): string => `rerun-${cutChars(head, 12)}-${shortHash(name)}-`;

const shortHash = (text: string): string => cutChars(createHash("sha256").update(text).digest("hex"), 12);

/** A reviewer takes back alone what they wanted; they are asked to look again. */
async function askAgain({ forge, call, row }: Followed, { reasons }: FollowRound): Promise<void> {
  const logins = new Set(reasons.filter(({ kind }) => kind === "changes").map(({ name }) => name));
  if (logins.size === 0) return;
  const reviews = await forge.readReviews(call, row.number);
  for (const login of logins) {
    const author = reviews.find((review) => review.author?.login === login)?.author;
    if (author !== undefined) await forge.askForReview(call, row.number, author);
  }
}
