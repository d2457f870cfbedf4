/** What people are told of a followed pull request: once each, on the forge, in the session's events, and by a notice. */
import { createHash } from "node:crypto";
import type { FollowNotice } from "../contract/follow.ts";
import { harmlessPost } from "../forge/harmless-post.ts";
import { postOnce } from "../forge/post-once.ts";
import type { ActivityScope } from "../runtime/activity-scope.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import { appendEvents } from "../store/events.ts";
import { addPost, findFollow, listFollowRounds, pauseFollow } from "../store/follows.ts";
import { findSession } from "../store/sessions.ts";
import { cutChars } from "../text/cut.ts";
import { dollars, inWords, plural } from "../text/format.ts";
import { sessionOfFollower } from "../contract/follow.ts";
import type { LookedAt } from "./look.ts";
import { isNotToBeFound, type Followed } from "./followed.ts";
import { stoppedPost, type SpokenComment } from "./conversation.ts";
import { costOfRounds } from "./rounds.ts";
import { heldChecks, type HeadIs } from "./verdict.ts";

/** Tells two commits apart in an id. Chosen. */
const COMMIT_CHARS = 12;
/** So often it is told for one push of the session which checks wait; then people know. Chosen. */
const MOST_HELD = 3;

/** People are told for each push of the session, and not for each of theirs: a comment on every one of them would be a nuisance. */
const sinceOurs = ({ ownCommit }: Pick<LookedAt, "ownCommit">): string =>
  cutChars(ownCommit ?? "none", COMMIT_CHARS);

/** In words for people. */
const FOREIGN = {
  "on-top":
    "somebody else has pushed commits on top of the session's: nothing is done until somebody who may write to the repository mentions it in a comment",
  rewritten: "the branch was rewritten: the session's commits are not part of it any more",
  gone: "the branch was deleted",
} as const;

/** Checks that wait for a person, and such as fail on the base, too, are told once on the forge, and are never a round. */
export async function tellOfHeldChecks(followed: Followed, looked: LookedAt): Promise<void> {
  const still = heldChecks(looked.seen.checks).map(({ name }) => name);
  const prefix = `held-${sinceOurs(looked)}-`;
  const told = followed.row.posts.filter((one) => one.startsWith(`${followed.session.id}.${prefix}`));
  if (still.length === 0 || told.length >= MOST_HELD) return;
  const names = inWords(still);
  const mark = createHash("sha256").update(names).digest("hex").slice(0, COMMIT_CHARS);
  await waitForPerson(
    followed,
    `${prefix}${mark}`,
    `these checks wait for a person, who may have to press a button on the forge: ${names}`,
  );
}

/** Tells people once, on the forge and in the events, what a person has to do. */
async function waitForPerson(followed: Followed, id: string, what: string): Promise<void> {
  await post(followed, id, `Longhaul waits: ${what}.`, what);
}

export async function pauseFollowing(followed: Followed, reason: string): Promise<void> {
  const { deps, session, row } = followed;
  await post(
    followed,
    `paused-${row.rounds}-${row.roundsUpTo}`,
    `Longhaul has stopped working on this pull request: ${reason}. The session is kept. To go on: \`longhaul follow ${session.id}\``,
  );
  await deps.store.db.transaction(async (tx) => {
    const paused = await pauseFollow(tx, session.id, reason);
    if (!paused) return;
    await appendEvents(tx, session.id, session.epoch, [
      { type: "follow:paused", step: session.reached, data: { reason } },
    ]);
  });
}

/**
 * Written once. That it was is stored together with its event: of a worker that dies in between, both are made up for.
 * @param waitsFor what a person has to do, for the events
 */
async function post(followed: Followed, id: string, text: string, waitsFor?: string): Promise<void> {
  const { deps, session, call, row } = followed;
  const { db } = deps.store;
  const postId = `${session.id}.${id}`;
  if (row.posts.includes(postId)) return;
  try {
    await postOnce(call, row.number, {
      key: followed.postKey,
      id: postId,
      text: harmlessPost(deps.sanitizer.clean(text)),
      since: row.openedAt,
    });
  } catch (error) {
    // One that is away is asked again by the next look.
    if (!isNotToBeFound(error)) throw error;
    // A token that may read and not write: it is said in the session's events.
  }
  await db.transaction(async (tx) => {
    await addPost(tx, session.id, postId);
    if (waitsFor === undefined) return;
    await appendEvents(tx, session.id, session.epoch, [
      { type: "follow:waiting", step: session.reached, data: { for: waitsFor } },
    ]);
  });
}

/** Tells that the newest commit is not the session's. @returns it in words */
export async function tellOfForeign(
  followed: Followed,
  looked: LookedAt,
  whose: Exclude<HeadIs, "ours" | "stale">,
): Promise<string> {
  const why = FOREIGN[whose];
  await waitForPerson(followed, `foreign-${whose}-${sinceOurs(looked)}`, why);
  return why;
}

/** Tells what following has cost, where the session had something to do. */
export async function tellOfMerge(followed: Followed): Promise<void> {
  const rounds = await listFollowRounds(followed.deps.store.db, followed.session.id);
  if (rounds.length === 0) return;
  const costUsd = await costOfRounds(followed, rounds);
  const cost = costUsd > 0 ? `, ${dollars(costUsd)}` : "";
  await post(
    followed,
    "merged",
    `Merged. Longhaul has worked on it in ${plural(rounds.length, "round")}${cost}.`,
  );
}

/** Acknowledges once that somebody has ended it. @param command the comment that did; without one, the label did */
export async function tellOfStop(followed: Followed, command: SpokenComment | undefined): Promise<void> {
  const run = command?.wants === "stop" && followed.works ? ", and its run is cancelled" : "";
  await post(
    followed,
    stoppedPost(command?.id ?? "label"),
    `Longhaul follows this pull request no more${run}. The session is kept. To go on: \`longhaul follow ${followed.session.id}\``,
  );
}

/** A closed pull request is looked at no more: whoever opens it again has to say that it goes on. */
export async function tellOfClose(followed: Followed): Promise<void> {
  const rounds = await listFollowRounds(followed.deps.store.db, followed.session.id);
  if (rounds.length === 0) return;
  await post(
    followed,
    `closed-${followed.row.heardFrom.getTime()}`,
    `Longhaul follows this pull request no more, as it is closed. If it is opened again within 30 days, this goes on with the rounds that were left: \`longhaul follow ${followed.session.id}\``,
  );
}

/** The session's own draft cannot be made ready: a person has to. */
export async function tellOfDraft(followed: Followed, why: string): Promise<void> {
  await waitForPerson(followed, "draft", `it can be reviewed, and could not be made ready: ${why}`);
}

/** Sends a notice to the operator's address, if there is one. @throws Error if the address does not take it */
export async function sendFollowNotice(
  { notices, store, sanitizer }: AgentDeps,
  { sessionId, runId, signal }: ActivityScope,
  event: FollowNotice,
): Promise<void> {
  const id = sessionOfFollower(sessionId);
  const [row, session] = [await findFollow(store.db, id), await findSession(store.db, id)];
  if (notices === undefined || row === undefined || session === undefined) return;
  const text = row.reason === null ? row.url : `${row.url}: ${row.reason}`;
  await notices.send(
    {
      id: [id, event, row.rounds, row.roundsUpTo, runId].join(":"),
      event,
      session: id,
      question: null,
      kind: null,
      status: row.state,
      command: event === "follow:paused" ? `longhaul follow ${id}` : `longhaul status ${id}`,
      ...(notices.withContent ? { text: sanitizer.clean(text), options: null } : {}),
    },
    signal,
  );
}
