/**
 * Comments that are written exactly once, whatever dies in between: each has a mark that people do not see, and is looked for before it
 * is written. The mark is keyed, so nobody can pretend that a comment is ours, or that ours is written already.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import { atPresentName, adapterFor } from "./forges.ts";
import { ForgeRefusal, type ForgeCall } from "./calls.ts";
import type { ReviewOrder } from "./forge.ts";
import type { CommentFacts } from "./facts.ts";

/** Before a post was wanted: the forge's clock and ours differ. Chosen. */
const CLOCKS_MS = 60_000;
/** Of the HMAC, so that a mark is short. Chosen: 64 bits cannot be guessed by writing comments. */
const MARK_CHARS = 16;
/** What no mark can be ended by. */
const ID = /^[\w.:-]{1,200}$/;

/** Something to be written, whose id is the same in each attempt. */
export interface Post {
  /** Of this installation: with it, marks are made and known. */
  readonly key: string;
  /** Letters, digits and `. : - _`. */
  readonly id: string;
  readonly text: string;
  /** When it was first wanted: what is older is not looked through. */
  readonly since: Date;
}

/** Over the id alone: an edited text keeps its mark. */
const hashOf = (key: string, id: string): string =>
  createHmac("sha256", key).update(id).digest("hex").slice(0, MARK_CHARS);

/** @throws RangeError for an id that a mark cannot have */
export function makeMark(key: string, id: string): string {
  if (!ID.test(id)) throw new RangeError(`${JSON.stringify(id)} cannot be a post's id`);
  return `<!-- longhaul ${id} ${hashOf(key, id)} -->`;
}

/** The id of the post that a text is, if the mark is ours. */
export function postIn(key: string, text: string): string | undefined {
  for (const [, id = "", hash = ""] of text.matchAll(/<!-- longhaul ([\w.:-]{1,200}) ([0-9a-f]{16}) -->/g))
    if (timingSafeEqual(Buffer.from(hash), Buffer.from(hashOf(key, id)))) return id;
  return undefined;
}

const withMark = ({ key, id, text }: Post): string => `${text.trimEnd()}\n\n${makeMark(key, id)}`;

function found(post: Post, comments: readonly CommentFacts[]): number | undefined {
  return comments.find(({ text }) => postIn(post.key, text) === post.id)?.id;
}

/**
 * Writes a comment into a pull request's conversation, unless it is there.
 * @returns the comment's id. @throws ForgeRefusal
 */
export async function postOnce(call: ForgeCall, number: number, post: Post): Promise<number> {
  const since = new Date(post.since.getTime() - CLOCKS_MS);
  return await atPresentName(call, undefined, async (at) => {
    const forge = adapterFor(at);
    const known = found(post, await forge.readConversation(at, number, since));
    return known ?? (await forge.writeComment(at, number, withMark(post)));
  });
}

/**
 * Answers in a thread, unless the answer is there.
 * @returns the comment's id. @throws ForgeRefusal
 */
export async function replyOnce(
  call: ForgeCall,
  number: number,
  thread: string,
  post: Post,
): Promise<number> {
  return await atPresentName(call, undefined, async (at) => {
    const forge = adapterFor(at);
    const threads = await forge.readThreads(at, number);
    const comments = threads.find(({ id }) => id === thread)?.comments ?? [];
    return found(post, comments) ?? (await forge.replyToThread(at, number, thread, withMark(post)));
  });
}

/** A review, whose mark is in its summary. */
interface ReviewPost extends Pick<Post, "key" | "id"> {
  readonly wanted: ReviewOrder;
  /** What is written if the forge takes a line, or the verdict, not. */
  readonly instead: ReviewOrder;
}

/**
 * Writes a review, unless it is there.
 * @returns what was written, and the verdict as the forge has it. @throws ForgeRefusal
 */
export async function reviewOnce(
  call: ForgeCall,
  number: number,
  { key, id, wanted, instead }: ReviewPost,
): Promise<{
  readonly order: ReviewOrder;
  readonly verdict: ReviewOrder["verdict"];
  readonly wasThere: boolean;
}> {
  const forge = adapterFor(call);
  // GitLab keeps a review's text as a comment.
  const texts = [
    ...(await forge.readReviews(call, number)),
    ...(call.forge.kind === "gitlab" ? await forge.readConversation(call, number) : []),
  ].map(({ text }) => text);
  if (texts.some((text) => postIn(key, text) === id))
    return { order: wanted, verdict: wanted.verdict, wasThere: true };
  const write = async (review: ReviewOrder) => {
    const text = `${review.text.trimEnd()}\n\n${makeMark(key, id)}`;
    const verdict = await forge.writeReview(call, number, { ...review, text });
    return { order: review, verdict, wasThere: false };
  };
  try {
    return await write(wanted);
  } catch (error) {
    const isForm = error instanceof ForgeRefusal && (error.status === 400 || error.status === 422);
    if (!isForm) throw error;
    return await write(instead);
  }
}
