/**
 * What the worker does to a followed pull request by itself, without a model: it brings the branch up to date where the base demands
 * that, makes the session's own draft ready, and removes the branch once it is merged.
 */
import { mergeOfBase, pushMerge, readHeads, removeBranch, whoseHead } from "../git/followed-branch.ts";
import { appendEvents } from "../store/events.ts";
import { addPost } from "../store/follows.ts";
import { announcePublication, recordPublication } from "../store/repositories.ts";
import { cutChars } from "../text/cut.ts";
import { isAway, type Followed } from "./followed.ts";
import type { LookedAt } from "./look.ts";

const SHORT_CHARS = 12;

/**
 * Merges the base into the branch and pushes that, never by force. The same again, if it was done and not recorded.
 * @returns in words, what came of it. @throws GitFailed
 */
export async function updateBranch(followed: Followed, { pull, heads }: LookedAt): Promise<string> {
  const { access, deps, session, row, runId, repositoryUrl: url, call } = followed;
  const { db } = deps.store;
  const into = pull.base.branch;
  if (heads?.base === undefined) return `${into} is not there`;
  const made = await mergeOfBase(access, heads, { branch: row.branch, into });
  if ("refused" in made) return made.refused;
  const { commit } = made;
  const at = { sessionId: session.id, epoch: session.epoch, step: session.reached, runId };
  const publication = { ...at, kind: "push", ref: row.branch, commit } as const;
  // Announced first: it is known as ours, whatever dies now.
  await announcePublication(db, publication);
  const refused = await pushMerge(access, heads, { url, branch: row.branch, commit, signal: call.signal });
  if (refused !== undefined) return `${into} could not be merged into it: ${refused.refused}`;
  const data = { base: heads.base, commit };
  await db.transaction(async (tx) => {
    const isNew = await recordPublication(tx, { ...publication, status: "done" });
    if (!isNew) return;
    await appendEvents(tx, session.id, session.epoch, [
      { type: "follow:updated", step: session.reached, data },
    ]);
  });
  return `${into} (${cutChars(heads.base, SHORT_CHARS)}) was merged into it`;
}

/** The mark in the follower's row that it was seen as no draft: one that it is afterwards is a person's. */
export const readyMark = ({ session }: Pick<Followed, "session">): string => `${session.id}.ready`;

/** @returns why it could not be made ready; undefined if it is. @throws ForgeRefusal */
export async function makeReady(followed: Followed): Promise<string | undefined> {
  const { deps, session, forge, call, row } = followed;
  const did = await forge.makeReady(call, row.number);
  if (!did.done) return did.why;
  const { db } = deps.store;
  await db.transaction(async (tx) => {
    await addPost(tx, session.id, readyMark(followed));
    await appendEvents(tx, session.id, session.epoch, [
      { type: "follow:ready", step: session.reached, data: {} },
    ]);
  });
  return undefined;
}

/**
 * Removes the branch that the session has made, if it still is what was merged, and nothing else needs it. What cannot be done is left:
 * a branch that is still there harms nobody.
 */
export async function removeMergedBranch(followed: Followed, { pull }: LookedAt): Promise<void> {
  const { access, session, forge, call, row, settings, repositoryUrl: url, readPushes } = followed;
  const { signal } = call;
  const isOwn = session.config.repository?.branch.includes("{id}") === true;
  if (!settings.deleteBranch || !isOwn || pull.head.isHere !== true) return;
  try {
    const heads = await readHeads(access, url, { branch: row.branch, base: pull.base.branch, signal });
    if (heads.head === undefined || heads.head !== pull.head.commit) return;
    const pushes = (await readPushes()).filter(({ isRefused }) => !isRefused);
    if ((await whoseHead(access, heads, pushes)) !== "ours") return;
    const others = await forge.pullRequestsFrom(call, row.branch);
    if (others.some(({ state }) => state === "open")) return;
    await removeBranch(access, heads, { url, branch: row.branch, commit: heads.head, signal });
  } catch (error) {
    signal.throwIfAborted();
    if (!isAway(error)) throw error;
  }
}
