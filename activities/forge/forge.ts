/**
 * What Longhaul does on a forge, as every adapter offers it. One adapter a file: `github.ts`, `gitlab.ts`, `gitea.ts` (Forgejo too).
 * They know a forge's paths, fields and words; what is decided from them is the same for all.
 */
import { cutChars } from "../text/cut.ts";
import { serverWords } from "../process/remote-fetch.ts";
import { askForge, ForgeRefusal, type ForgeCall } from "./calls.ts";
import type {
  CheckFacts,
  CheckLog,
  CommentFacts,
  ForgeUser,
  PullRequestFacts,
  ReviewFacts,
  ThreadFacts,
} from "./facts.ts";

const MAX_SHOWN_CHARS = 300;

/** A pull request (GitLab's merge request) to make. */
export interface PullRequestOrder {
  readonly branch: string;
  /** The branch that it is to be merged into. */
  readonly into: string;
  readonly title: string;
  readonly text: string;
  readonly draft: boolean;
}

/** A pull request as the forge has it. */
export interface KnownPullRequest {
  readonly url: string;
  readonly number: number;
  readonly state: "open" | "closed" | "merged";
  readonly text: string;
  readonly into: string | undefined;
  /** Undefined if the forge does not say. */
  readonly isDraft: boolean | undefined;
  /** The newest commit of its branch; when it was merged, the last one. */
  readonly commit: string | undefined;
}

/** What a forge is asked about a pull request. It changes nothing. Each throws ForgeRefusal. */
interface ForgeReader {
  /** Whose credential it is. Undefined if the forge does not say. */
  whoAmI(call: ForgeCall): Promise<ForgeUser | undefined>;
  /** The name that a repository has now. Undefined if there is none of this number, or none that may be seen. */
  projectOf(call: ForgeCall, repositoryId: string): Promise<string | undefined>;
  readPullRequest(call: ForgeCall, number: number): Promise<PullRequestFacts>;
  /** The newest attempt of each on the head, and what is required and has not reported. */
  readChecks(call: ForgeCall, pull: PullRequestFacts): Promise<readonly CheckFacts[]>;
  /** The same names on the base: of each, the newest commit that has a result. None for a name that has no result there. */
  readBaseChecks(
    call: ForgeCall,
    pull: PullRequestFacts,
    names: readonly string[],
  ): Promise<readonly CheckFacts[]>;
  readThreads(call: ForgeCall, number: number): Promise<readonly ThreadFacts[]>;
  /** Those that were sent and stand, the oldest first: neither one that is still written, nor one that was dismissed. */
  readReviews(call: ForgeCall, number: number): Promise<readonly ReviewFacts[]>;
  /**
   * Comments that are in no thread, the oldest first.
   * @param since only what was changed from then on, where the forge can tell
   */
  readConversation(call: ForgeCall, number: number, since?: Date): Promise<readonly CommentFacts[]>;
  /** Whether a person may push, by the id. */
  mayWrite(call: ForgeCall, user: ForgeUser): Promise<boolean>;
  /** Whether the base's rules let nothing in that does not have the base's newest commit. Undefined if the forge does not say. */
  demandsNewestBase(call: ForgeCall, pull: PullRequestFacts): Promise<boolean | undefined>;
  /** What is kept of a check that has ended. Undefined if the forge has nothing, or the check names no job. */
  readLog(call: ForgeCall, check: CheckFacts): Promise<CheckLog | undefined>;
}

/** Something was done, or this forge cannot do it: then why, in words for people. */
export type Did = { readonly done: true } | { readonly done: false; readonly why: string };

/** Not allowed, not there, not in this state, or not in this form. A wrong credential (401) is a refusal of everything. */
const STAYS: ReadonlySet<number> = new Set([400, 403, 404, 409, 410, 422]);

/** A refusal of one order that stays is an answer: it cannot be done, and why. @throws whatever else it is */
export function whyNot(error: unknown): Did {
  if (error instanceof ForgeRefusal && !error.isPassing && STAYS.has(error.status))
    return { done: false, why: error.message };
  throw error;
}

/** Does it, and says if it cannot be done. @throws ForgeRefusal if it may pass, or the credential is wrong */
export async function did(perform: () => Promise<Did | undefined>): Promise<Did> {
  try {
    return (await perform()) ?? { done: true };
  } catch (error) {
    return whyNot(error);
  }
}

/** A line of a pull request's diff, by its number on each side: an unchanged line has both. */
interface ReviewLine {
  readonly old: number | undefined;
  readonly new: number | undefined;
}

/** A comment of a review, on lines that the diff shows. */
export interface ReviewComment {
  readonly oldPath: string;
  readonly newPath: string;
  readonly first: ReviewLine;
  /** The same, unless it is about several lines. */
  readonly last: ReviewLine;
  readonly text: string;
}

/** A review to write, all at once. */
export interface ReviewOrder {
  /** What was read. */
  readonly commit: string;
  readonly verdict: "comment" | "approve" | "request-changes";
  readonly text: string;
  readonly comments: readonly ReviewComment[];
}

/** What became of an order to make a draft ready, by what the forge shows then. */
export const readyNow = (isDraft: boolean): Did =>
  isDraft ? { done: false, why: "the forge still shows it as a draft" } : { done: true };

/** What is written into a pull request. None of it is repeated safely: `postOnce` is. Each throws ForgeRefusal. */
interface ForgeWriter {
  /** @returns the comment's id */
  writeComment(call: ForgeCall, number: number, text: string): Promise<number>;
  /** @returns the comment's id */
  replyToThread(call: ForgeCall, number: number, thread: string, text: string): Promise<number>;
  resolveThread(call: ForgeCall, number: number, thread: string): Promise<Did>;
  /**
   * Writes a review so that people get one notice of it.
   * @returns the verdict as the forge has it. @throws ForgeRefusal, with 400 or 422 if it takes a line or the verdict not
   */
  writeReview(call: ForgeCall, number: number, review: ReviewOrder): Promise<ReviewOrder["verdict"]>;
  /** Makes a draft ready for review. */
  makeReady(call: ForgeCall, number: number): Promise<Did>;
  /** Runs a check's job again, on the same commit. */
  rerunCheck(call: ForgeCall, check: CheckFacts): Promise<Did>;
  /** Asks a person for a review, also if they gave one. */
  askForReview(call: ForgeCall, number: number, user: ForgeUser): Promise<Did>;
  /** Asks somebody by their name on the forge, or a team (`organisation/team`). */
  askByName(call: ForgeCall, number: number, name: string): Promise<Did>;
  /** Sets a label that the repository has. */
  addLabel(call: ForgeCall, number: number, label: string): Promise<Did>;
  /** Assigns a person by their name on the forge, besides those who are. */
  assign(call: ForgeCall, number: number, login: string): Promise<Did>;
}

export interface Forge extends ForgeReader, ForgeWriter {
  /**
   * Pull requests from this branch of this repository, newest first, whatever became of them and wherever they go: a person may have
   * changed the target. None of forks, whose branches may have the same name and which anybody can make.
   */
  pullRequestsFrom(call: ForgeCall, branch: string): Promise<readonly KnownPullRequest[]>;
  /** @throws ForgeRefusal, with 409 or 422 if the branch may have one already */
  createPullRequest(call: ForgeCall, request: PullRequestOrder): Promise<KnownPullRequest>;
  /** Replaces the text, and nothing else. */
  writeText(call: ForgeCall, number: number, text: string): Promise<void>;
  /** The repository's own path in the API: it answers with the name that the repository has now. */
  repositoryPath(project: string): string;
}

/** Only what has a number and an address is a pull request: a proxy, or a forge that has only taken the order, answers otherwise. */
export function requirePullRequest<T>(
  call: ForgeCall,
  value: T,
  { url, number }: Partial<KnownPullRequest>,
): T {
  const isAddress = typeof url === "string" && /^https?:$/.test(URL.parse(url)?.protocol ?? "");
  if (!isAddress || !Number.isSafeInteger(number)) throw unreadable(call, value);
  return value;
}

/** The number of something that was made. @throws ForgeRefusal, which passes: the next attempt looks whether it is there */
export function requireId(call: ForgeCall, value: unknown): number {
  const { id } = { ...(value as { readonly id?: unknown } | null) };
  if (typeof id !== "number" || !Number.isSafeInteger(id)) throw unreadable(call, value, "what it made");
  return id;
}

/** @throws ForgeRefusal, which passes: the next attempt looks whether there is one */
export function requireList(call: ForgeCall, value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw unreadable(call, value);
  return value;
}

const unreadable = ({ forge }: ForgeCall, value: unknown, what = "a pull request") =>
  new ForgeRefusal(
    502,
    `${forge.api} did not answer with ${what}: ${serverWords(cutChars(JSON.stringify(value), MAX_SHOWN_CHARS))}`,
  );

/** The name that a repository has now, by the path that has its number. @throws ForgeRefusal, unless there is no such repository */
export async function projectById(call: ForgeCall, path: string): Promise<string | undefined> {
  try {
    return projectIn(await askForge(call, "GET", path));
  } catch (error) {
    if (error instanceof ForgeRefusal && error.status === 404) return undefined;
    throw error;
  }
}

/** The name in a repository's own answer. Undefined if it is none that could be asked for. */
export function projectIn(answer: unknown): string | undefined {
  const { full_name: name, path_with_namespace: path = name } = { ...(answer as Named | null) };
  return typeof path === "string" && /^[^/?#]+(\/[^/?#]+)+$/.test(path) ? path : undefined;
}

interface Named {
  readonly full_name?: unknown;
  /** GitLab's name for it. */
  readonly path_with_namespace?: unknown;
}
