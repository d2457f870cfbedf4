/**
 * What a forge says about a pull request, in one form for all. Adapters read it (`*-facts.ts`) and decide nothing. Undefined is always
 * "the forge does not say", never "no".
 */

/** A person or a bot. Only the id is theirs for good: a login can be given up and taken by somebody else. */
export interface ForgeUser {
  readonly id: number;
  readonly login: string;
}

export interface PullRequestFacts {
  readonly number: number;
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

interface ThreadComment {
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
  readonly comments: readonly ThreadComment[];
}

export interface ReviewFacts {
  readonly id: number;
  readonly author: ForgeUser | undefined;
  readonly verdict: "approved" | "changes-requested" | "commented";
  readonly text: string;
  /** The commit that was looked at. */
  readonly commit: string | undefined;
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
