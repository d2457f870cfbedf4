/**
 * Reviews and threads on Gitea and Forgejo. A thread is a place: the server shows together what is said on one line, so an answer is
 * one more comment there. Source: each server's own description; measured with Gitea 1.24.6 (test/forge).
 */
import { askForge, type ForgeCall } from "./calls.ts";
import type { ReviewFacts, ThreadFacts } from "./facts.ts";
import { readyNow, requireId, requireList, whyNot, type Did, type ReviewOrder } from "./forge.ts";
import { giteaCan, type GiteaAbility } from "./gitea-description.ts";
import { giteaRepository } from "./gitea-facts.ts";
import { toComment, toUser, type GitHubComment, type GitHubUser } from "./github-form.ts";

const PAGE_SIZE = 50;
/** Chosen: 1,000 reviews are read. */
const MAX_PAGES = 20;

const pulls = (call: ForgeCall) => `${giteaRepository(call)}/pulls`;

/** Those that were sent: one that is still written, and the mere wish for one, are none. */
async function sentReviews(call: ForgeCall, number: number): Promise<readonly ReviewAnswer[]> {
  const all: ReviewAnswer[] = [];
  for (let page = 1; page <= MAX_PAGES; page += 1) {
    const path = `${pulls(call)}/${number}/reviews?limit=${PAGE_SIZE}&page=${page}`;
    const rows = requireList(call, await askForge(call, "GET", path)) as readonly ReviewAnswer[];
    all.push(...rows);
    if (rows.length === 0) break;
  }
  return all.filter(({ state }) => VERDICTS.has(state));
}

/** Reviews that were sent and stand, the oldest first. @throws ForgeRefusal */
export async function giteaReviews(call: ForgeCall, number: number): Promise<readonly ReviewFacts[]> {
  const sent = await sentReviews(call, number);
  return sent
    .filter(({ dismissed }) => dismissed !== true)
    .map(({ id, user, state, body, commit_id: commit }) => ({
      id,
      author: toUser(user),
      verdict: VERDICTS.get(state) ?? "commented",
      text: body,
      commit: commit || undefined,
    }));
}

/** Comments on places of the change. @throws ForgeRefusal */
export async function giteaThreads(call: ForgeCall, number: number): Promise<readonly ThreadFacts[]> {
  const comments: CommentAnswer[] = [];
  for (const { id, comments_count: count } of await sentReviews(call, number))
    if (count !== 0) comments.push(...(await commentsOf(call, number, id)));
  return threadsOf(comments);
}

async function commentsOf(
  call: ForgeCall,
  number: number,
  review: number,
): Promise<readonly CommentAnswer[]> {
  const answer = await askForge(call, "GET", `${pulls(call)}/${number}/reviews/${review}/comments`);
  return requireList(call, answer) as readonly CommentAnswer[];
}

const VERDICTS: ReadonlyMap<string, ReviewFacts["verdict"]> = new Map([
  ["APPROVED", "approved"],
  ["REQUEST_CHANGES", "changes-requested"],
  ["COMMENT", "commented"],
]);

/** By their first comments: the server lists those of one review in any order. */
function threadsOf(comments: readonly CommentAnswer[]): readonly ThreadFacts[] {
  const byId = (one: CommentAnswer, other: CommentAnswer) => one.id - other.id;
  const commentsByPlace = Map.groupBy(
    comments.toSorted(byId),
    ({ path, position, original_position: before }) => `${path}:${position || `-${before}`}`,
  );
  return [...commentsByPlace].map(([id, inOrder]) => {
    const [first] = inOrder;
    return {
      id,
      path: first?.path ?? "",
      // 0 if the place is on the side before the change.
      line: first?.position || undefined,
      // The server does not say.
      isOutdated: undefined,
      isResolved: inOrder.some(({ resolver }) => resolver !== null && resolver !== undefined),
      comments: inOrder.map(toComment),
    };
  });
}

/** Where a comment belongs: the line after the change, or before it. */
function placeIn(thread: string): {
  readonly path: string;
  readonly new_position: number;
  readonly old_position: number;
} {
  const at = thread.lastIndexOf(":");
  const position = Number(thread.slice(at + 1));
  return {
    path: thread.slice(0, at),
    new_position: Math.max(0, position),
    old_position: Math.max(0, -position),
  };
}

/**
 * By the server's own call where it has one, else by a review of one comment on the same place.
 * @returns the comment's id. @throws ForgeRefusal
 */
export async function giteaReply(
  call: ForgeCall,
  number: number,
  thread: string,
  body: string,
): Promise<number> {
  const first = await firstComment(call, number, thread, "POST /repos/{}/{}/pulls/{}/comments/{}/replies");
  if (first !== undefined)
    return requireId(
      call,
      await askForge(call, "POST", `${pulls(call)}/${number}/comments/${first}/replies`, { body }),
    );
  const review = { event: "COMMENT", comments: [{ ...placeIn(thread), body }] };
  const made = requireId(call, await askForge(call, "POST", `${pulls(call)}/${number}/reviews`, review));
  const [comment] = await commentsOf(call, number, made);
  return requireId(call, comment);
}

const EVENTS = { comment: "COMMENT", approve: "APPROVED", "request-changes": "REQUEST_CHANGES" } as const;

/** Of several lines, it takes the last. @throws ForgeRefusal */
export async function giteaReview(
  call: ForgeCall,
  number: number,
  { commit, verdict, text, comments }: ReviewOrder,
): Promise<ReviewOrder["verdict"]> {
  const rows = comments.map(({ newPath: path, last, text: body }) => ({
    path,
    body,
    new_position: last.new ?? 0,
    old_position: last.new === undefined ? (last.old ?? 0) : 0,
  }));
  const fields = { commit_id: commit, body: text, event: EVENTS[verdict], comments: rows };
  requireId(call, await askForge(call, "POST", `${pulls(call)}/${number}/reviews`, fields));
  return verdict;
}

/** @throws ForgeRefusal if it may pass */
export async function giteaResolve(call: ForgeCall, number: number, thread: string): Promise<Did> {
  const first = await firstComment(call, number, thread, "POST /repos/{}/{}/pulls/comments/{}/resolve");
  if (first === undefined) return { done: false, why: "This server has no call that resolves a thread." };
  try {
    await askForge(call, "POST", `${pulls(call)}/comments/${first}/resolve`);
    return { done: true };
  } catch (error) {
    return whyNot(error);
  }
}

/** The title marks a draft, by what the server's operator has set: what it shows afterwards counts. @throws ForgeRefusal if it may pass */
export async function giteaMakeReady(call: ForgeCall, number: number): Promise<Did> {
  const path = `${pulls(call)}/${number}`;
  const { title } = (await askForge(call, "GET", path)) as { readonly title: string };
  const ready = title.replace(/^(?:\s*(?:WIP:|\[WIP\]))+\s*/i, "");
  if (ready === "" || ready === title)
    return { done: false, why: "its title has no mark of a draft that is known" };
  try {
    const { draft } = (await askForge(call, "PATCH", path, { title: ready })) as { readonly draft: boolean };
    return readyNow(draft);
  } catch (error) {
    return whyNot(error);
  }
}

/** The comment that a thread is known by to the server, if the server has the call that takes it. */
async function firstComment(
  call: ForgeCall,
  number: number,
  thread: string,
  ability: GiteaAbility,
): Promise<number | undefined> {
  if (!(await giteaCan(call, ability))) return undefined;
  const threads = await giteaThreads(call, number);
  return threads.find(({ id }) => id === thread)?.comments[0]?.id;
}

interface ReviewAnswer {
  readonly id: number;
  readonly user: GitHubUser | null;
  readonly state: string;
  readonly dismissed?: boolean;
  readonly body: string;
  readonly commit_id: string;
  readonly comments_count: number;
}

interface CommentAnswer extends GitHubComment {
  readonly path: string;
  readonly position: number;
  readonly original_position: number;
  readonly resolver?: GitHubUser | null;
}
