/**
 * What a forge says about a pull request, in one form for all. Adapters read it (`*-facts.ts`) and decide nothing. Undefined is always
 * "the forge does not say", never "no".
 */

/** A person or a bot. Only the id is theirs for good: a login can be given up and taken by somebody else. */
export interface ForgeUser {
  readonly id: number;
  readonly login: string;
  /** Only where the forge says that it is a program's account: a name that looks so proves nothing. */
  readonly isBot?: boolean | undefined;
}

export interface PullRequestFacts {
  readonly number: number;
  /** The number of the repository that it goes into, which a new name does not change. */
  readonly repositoryId: string;
  readonly url: string;
  readonly title: string;
  readonly text: string;
  readonly state: "open" | "closed" | "merged";
  readonly isDraft: boolean;
  readonly author: ForgeUser | undefined;
  readonly labels: readonly string[];
  /** Its newest commit, and whether the branch is in the repository itself: undefined if its fork is gone. */
  readonly head: { readonly branch: string; readonly commit: string; readonly isHere: boolean | undefined };
  readonly base: { readonly branch: string; readonly commit: string | undefined };
  /** `unknown`: not computed yet, or the forge does not say why it cannot be merged. Never taken for a conflict. */
  readonly merge: "clean" | "conflict" | "unknown";
  /** Whether it waits in a merge queue, or on a merge train: a push would throw it out. */
  readonly isQueued: boolean | undefined;
  /** What it became on its base. Undefined unless it is merged. */
  readonly mergeCommit: string | undefined;
}

/**
 * `held`: it waits for a person's approval. `stopped`: somebody, or a newer push, cancelled it. `missing`: it is required and has not
 * reported at all.
 */
export type CheckState = "good" | "failed" | "running" | "held" | "stopped" | "missing";

export interface CheckFacts {
  readonly name: string;
  readonly state: CheckState;
  readonly isRequired: boolean | undefined;
  /** Where people read about it. */
  readonly url: string | undefined;
  /** What its log is asked for by, where the forge names it. */
  readonly job: string | undefined;
}

/** Written by a person or a bot, in a thread or in a pull request's conversation. */
export interface CommentFacts {
  readonly id: number;
  readonly author: ForgeUser | undefined;
  readonly text: string;
  /** Of its last change, as the forge writes it. */
  readonly changedAt: string;
}

/** Comments on one place of the change, the oldest first: the last one has the last word. */
export interface ThreadFacts {
  readonly id: string;
  readonly path: string;
  readonly line: number | undefined;
  readonly isResolved: boolean | undefined;
  /** Whether the code below it has moved: no evidence that anything was repaired. */
  readonly isOutdated?: boolean | undefined;
  readonly comments: readonly CommentFacts[];
}

export interface ReviewFacts {
  /** GitLab has no reviews, only what a reviewer thinks now: there, it is the reviewer's. */
  readonly id: number;
  readonly author: ForgeUser | undefined;
  readonly verdict: "approved" | "changes-requested" | "commented";
  readonly text: string;
  /** The commit that was looked at. */
  readonly commit: string | undefined;
}

/** What a forge keeps of a check that has ended. */
export interface CheckLog {
  /** The job's log. Undefined if it never began, is gone, or is not on this forge: `annotations` and `summary` may be there. */
  readonly text: string | undefined;
  /** How many bytes were left out of its middle, because it is longer than what is read. */
  readonly leftOutBytes: number;
  /** In their order. Undefined if the forge does not say when each began and ended. */
  readonly steps: readonly StepFacts[] | undefined;
  /** Places that the check complains of. */
  readonly annotations: readonly AnnotationFacts[];
  /** What another program than the forge's own runner reports: a stranger's text. */
  readonly summary: string | undefined;
}

export interface StepFacts {
  readonly name: string;
  readonly state: CheckState;
  /** As the forge writes it, in whole seconds. */
  readonly startedAt: string | undefined;
  readonly endedAt: string | undefined;
}

export interface AnnotationFacts {
  readonly path: string;
  readonly line: number | undefined;
  readonly level: "failure" | "warning" | "notice";
  readonly text: string;
}

/**
 * A check's state by the word of whatever forge: conclusions and states of GitHub's checks, states of commit statuses, statuses of
 * GitLab's jobs, whatever their case. A word that is not known runs: nothing is repaired because of it, and nothing is delivered.
 */
export function checkState(word: string | null | undefined): CheckState {
  return STATES.get((word ?? "").toLowerCase()) ?? "running";
}

/** Source: docs.github.com/rest/checks/runs, docs.gitlab.com/ci/jobs, Gitea's CommitStatusState. */
const STATES: ReadonlyMap<string, CheckState> = new Map(
  Object.entries({
    good: ["success", "neutral", "skipped", "warning"],
    failed: ["failure", "failed", "timed_out", "startup_failure", "error"],
    held: ["action_required", "manual"],
    stopped: ["cancelled", "canceled", "stale"],
  }).flatMap(([state, words]) => words.map((word) => [word, state as CheckState] as const)),
);

/**
 * Marks what a branch requires, and adds what it requires and has not reported.
 * @param required names; `*` stands for anything, as in Gitea's patterns. Undefined if the forge does not say
 */
export function withRequired(
  checks: readonly Omit<CheckFacts, "isRequired">[],
  required: readonly string[] | undefined,
): readonly CheckFacts[] {
  const patterns = (required ?? []).map((name) => ({ name, pattern: patternOf(name) }));
  const isRequired = (name: string) =>
    required === undefined ? undefined : patterns.some(({ pattern }) => pattern.test(name));
  const missing = patterns.filter(({ pattern }) => !checks.some(({ name }) => pattern.test(name)));
  return [
    ...checks.map((check) => ({ ...check, isRequired: isRequired(check.name) })),
    ...missing.map(({ name }) => ({
      name,
      state: "missing" as const,
      isRequired: true,
      url: undefined,
      job: undefined,
    })),
  ];
}

const patternOf = (name: string): RegExp =>
  new RegExp(`^${name.replaceAll(/[.+?^${}()|[\]\\]/g, "\\$&").replaceAll("*", ".*")}$`, "u");

/**
 * Of each name, the newest commit's check that has ended.
 * @param commits of a branch, the newest first: the checks of each
 */
export function newestResults(
  names: readonly string[],
  commits: readonly (readonly CheckFacts[])[],
): readonly CheckFacts[] {
  const ended = commits.map((checks) => checks.filter(({ state }) => state === "good" || state === "failed"));
  return names.flatMap((name) => {
    const results = ended.flatMap((checks) => {
      const own = checks.filter((check) => check.name === name);
      // Of several with one name, one that failed counts.
      return own.find(({ state }) => state === "failed") ?? own[0] ?? [];
    });
    return results.slice(0, 1);
  });
}
