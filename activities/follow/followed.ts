/** What a follower works with: the session, its pull request's place, and where following stands. */
import { followSchema, type FollowSettings } from "../config/follow-settings.ts";
import { noForge } from "../config/git-settings.ts";
import { fatal } from "../contract/failures.ts";
import { sessionOfFollower } from "../contract/follow.ts";
import { ForgeRefusal, type ForgeCall } from "../forge/calls.ts";
import { adapterFor } from "../forge/forges.ts";
import type { Forge } from "../forge/forge.ts";
import { findForge } from "../forge/recognise.ts";
import type { GitAccess } from "../git/git-access.ts";
import { GitFailed } from "../git/run-git.ts";
import { CredentialUnavailable, toRefusal } from "../git/trouble.ts";
import type { ActivityScope } from "../runtime/activity-scope.ts";
import { accessOf, type AgentDeps } from "../runtime/deps.ts";
import { findFollow, isRunning, type FollowRow } from "../store/follows.ts";
import { readInstallation } from "../store/installation.ts";
import type { Queryable } from "../store/db.ts";
import {
  findRepository,
  listPublications,
  listPushes,
  type BranchPush,
  type PublicationRow,
} from "../store/repositories.ts";
import { findSession, type Session } from "../store/sessions.ts";

export interface FollowPlace {
  readonly deps: AgentDeps;
  readonly session: Session;
  readonly access: GitAccess;
  readonly forge: Forge;
  readonly call: ForgeCall;
  readonly settings: FollowSettings;
  /** The repository's address. */
  readonly repositoryUrl: string;
  readonly branch: string;
  /** The pull request's. */
  readonly number: number;
  readonly url: string;
  /** The session opens its pull requests as drafts. */
  readonly isOwnDraft: boolean;
}

export interface Followed extends FollowPlace {
  readonly row: FollowRow;
  /** The session's run is on. */
  readonly works: boolean;
  readonly readPushes: () => Promise<readonly BranchPush[]>;
  /** With it, what was written is known as ours. */
  readonly postKey: string;
  /** The follower's run. */
  readonly runId: string;
  readonly nowMs: number;
  /** Intervals are divided by it. */
  readonly pace: number;
}

/** @throws BadConfiguration (fatal) for a session that has no pull request */
export const requirePlace = (deps: AgentDeps, { sessionId, signal }: ActivityScope): Promise<FollowPlace> =>
  placeOf(deps, sessionOfFollower(sessionId), signal);

async function placeOf(deps: AgentDeps, id: string, signal: AbortSignal): Promise<FollowPlace> {
  const { db } = deps.store;
  const session = await findSession(db, id);
  const git = session?.config.repository;
  const repository = session && (await findRepository(db, id));
  if (session === undefined || git === undefined || repository === undefined)
    throw fatal("BadConfiguration", `There is no session ${id} that works on a repository.`);
  const opened = git.pull ?? (await listPublications(db, id)).find(isOpened);
  const number = numberIn(opened?.url);
  if (opened?.url == null || number === undefined)
    throw fatal("BadConfiguration", `${id} has no pull request. Open one with: longhaul pr ${id}`);
  const forge = await findForge(repository.url, git.forge, signal);
  if (forge === undefined) throw fatal("BadConfiguration", noForge(repository.url));
  const access = accessOf(deps);
  const token = await access.tokenFor(repository.url, signal);
  const call = { forge, token, signal };
  return {
    deps,
    session,
    access,
    forge: adapterFor(call),
    call,
    settings: followSchema.parse(git.follow ?? {}),
    repositoryUrl: repository.url,
    branch: "ref" in opened ? opened.ref : repository.branch,
    number,
    url: opened.url,
    isOwnDraft: git.pr === "draft",
  };
}

const isOpened = ({ kind, status, url }: PublicationRow): boolean =>
  kind === "pull-request" && status === "done" && url !== null;

/**
 * What the session has pushed to a branch; of a pull request that it took over, also the commit that it began with, which is somebody
 * else's: what is there is where the session began, until somebody pushes on top of it.
 */
export async function pushesTo(
  db: Queryable,
  { id, config: { repository: git } }: Pick<Session, "id" | "config">,
  branch: string,
): Promise<readonly BranchPush[]> {
  const pushes = await listPushes(db, id, branch);
  const repository = git?.pull === undefined ? undefined : await findRepository(db, id);
  if (repository?.branch !== branch) return pushes;
  const begun = { commit: repository.baseCommit, at: new Date(0), isDone: true, isRefused: false };
  return [...pushes, begun];
}

/** The number with which each forge's address of a pull request ends. */
const numberIn = (url: string | null | undefined): number | undefined => {
  const digits = /\/(\d{1,15})\/?$/.exec(url ?? "")?.[1];
  return digits === undefined ? undefined : Number(digits);
};

/** @returns undefined if it is not followed, or not any more */
export async function enterFollow(deps: AgentDeps, scope: ActivityScope): Promise<Followed | undefined> {
  const { db } = deps.store;
  const id = sessionOfFollower(scope.sessionId);
  const row = await findFollow(db, id);
  if (row === undefined || row.endedAt !== null) return undefined;
  const followPlace = await requirePlace(deps, scope);
  const { call } = followPlace;
  return {
    ...followPlace,
    // It may have been renamed since.
    call: { ...call, forge: { ...call.forge, project: row.project } },
    // What it was when it began: a later delivery elsewhere is not followed.
    number: row.number,
    url: row.url,
    branch: row.branch,
    row,
    works: await isRunning(db, id),
    readPushes: () => pushesTo(db, followPlace.session, row.branch),
    postKey: await readInstallation(db),
    runId: scope.runId,
    nowMs: Date.now(),
    pace: deps.followPace ?? 1,
  };
}

/**
 * Why a session's commits are not pushed now to the pull request that it follows, or took over: its branch may have been merged and
 * removed while it worked, and a push throws it out of a merge queue. What cannot be asked is no reason: a push is never forced.
 */
export async function whyNoPush(
  deps: AgentDeps,
  sessionId: string,
  scope: ActivityScope,
  takenOver: number | undefined,
): Promise<string | undefined> {
  const row = await findFollow(deps.store.db, sessionId);
  const number = row === undefined || row.endedAt !== null ? takenOver : row.number;
  if (number === undefined) return undefined;
  const { forge, call } = await placeOf(deps, sessionId, scope.signal);
  try {
    const { state, isQueued } = await forge.readPullRequest(call, number);
    if (state !== "open") return `its pull request is ${state}`;
    return isQueued === true ? "its pull request is in the merge queue, which a push would end" : undefined;
  } catch (error) {
    if (isAway(error)) return undefined;
    throw error;
  }
}

/** The forge refuses for good, or knows no such pull request: a token was revoked, a repository is gone. */
export const isNotToBeFound = (error: unknown): error is ForgeRefusal =>
  error instanceof ForgeRefusal && !error.isPassing && [401, 403, 404, 410].includes(error.status);

/** The forge, or its git, cannot be asked now. */
export const isAway = (error: unknown): error is ForgeRefusal | GitFailed | CredentialUnavailable =>
  error instanceof ForgeRefusal || error instanceof GitFailed || error instanceof CredentialUnavailable;

/** In words, and how long it wants to be left alone. */
export function awayFacts(error: ForgeRefusal | GitFailed | CredentialUnavailable): {
  readonly why: string;
  readonly retryAfterMs: number | undefined;
} {
  if (error instanceof ForgeRefusal) return { why: error.message, retryAfterMs: error.limitMs };
  const { trouble } = error instanceof GitFailed ? error.result : error;
  return { why: trouble === undefined ? error.message : toRefusal(trouble).refused, retryAfterMs: undefined };
}
