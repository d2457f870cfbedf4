/** One pull request as a strict fake of a forge keeps it, on a real git repository; what people, and a runner of checks, do to it. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execFileSync } from "node:child_process";
import { gitIn, type Remote } from "../remotes.ts";

export interface Person {
  readonly id: number;
  readonly login: string;
  readonly mayWrite: boolean;
  readonly isBot?: boolean;
}

/** `bot` has the token that Longhaul uses. */
export const PEOPLE = {
  bot: { id: 1, login: "bot", mayWrite: true },
  dev: { id: 2, login: "dev", mayWrite: true },
  stranger: { id: 3, login: "stranger", mayWrite: false },
} as const satisfies Record<string, Person>;

export interface KeptCheck {
  readonly id: number;
  readonly name: string;
  readonly commit: string;
  readonly result: "running" | "failed" | "good" | "held";
  readonly log: string;
  readonly steps: readonly KeptStep[];
}

interface KeptStep {
  readonly name: string;
  readonly result: "failed" | "good";
  readonly from: string;
  readonly to: string;
}

export interface KeptComment {
  readonly id: number;
  readonly by: Person;
  text: string;
  at: string;
}

export interface KeptThread {
  readonly id: string;
  readonly path: string;
  readonly line: number;
  readonly comments: KeptComment[];
  isResolved: boolean;
}

interface KeptReview {
  readonly id: number;
  readonly by: Person;
  readonly verdict: "changes" | "approved" | "commented";
  readonly text: string;
  readonly commit: string;
}

type NewCheck = Pick<KeptCheck, "name" | "result"> & Partial<Pick<KeptCheck, "log" | "steps">>;

/** The one pull request of the fake; before it is opened, `isOpened` is false. */
export interface KeptPull {
  readonly remote: Remote;
  isOpened: boolean;
  branch: string;
  into: string;
  title: string;
  text: string;
  isDraft: boolean;
  isQueued: boolean;
  /** Set by a test: the repository that has the branch. */
  fork: string | undefined;
  state: "open" | "closed" | "merged";
  mergeCommit: string | undefined;
  readonly labels: string[];
  readonly checks: KeptCheck[];
  readonly threads: KeptThread[];
  readonly reviews: KeptReview[];
  readonly comments: KeptComment[];
  /** Whom it was asked of to review it again. */
  readonly asked: string[];
  readonly reruns: number[];
  /** Names of checks that the base requires. */
  readonly required: string[];
  nextId(): number;
  head(): string;
  /** Whether it merges without a conflict, as git says. */
  isMergeable(): boolean;
  /** Reports a check of a commit: a later report of the same name counts. */
  report(commit: string, check: NewCheck): void;
  review(by: Person, verdict: KeptReview["verdict"], comments?: readonly NewComment[]): void;
  comment(by: Person, text: string): void;
  reply(thread: KeptThread, by: Person, text: string): KeptComment;
  /** Somebody commits one file on a branch. @returns the commit */
  push(branch: string, path: string, text: string): string;
  squash(): void;
}

interface NewComment {
  readonly path: string;
  readonly line: number;
  readonly text: string;
}

export function keptPull(remote: Remote): KeptPull {
  let ids = 100;
  const now = () => new Date().toISOString();
  const comment = (by: Person, text: string): KeptComment => ({ id: pull.nextId(), by, text, at: now() });
  const pull: KeptPull = {
    remote,
    isOpened: false,
    branch: "",
    into: "main",
    title: "",
    text: "",
    isDraft: false,
    isQueued: false,
    fork: undefined,
    state: "open",
    mergeCommit: undefined,
    labels: [],
    checks: [],
    threads: [],
    reviews: [],
    comments: [],
    asked: [],
    reruns: [],
    required: [],
    nextId: () => (ids += 1),
    head: () => remote.at(`refs/heads/${pull.branch}`) ?? "",
    isMergeable: () => isMergeable(remote.folder, pull.into, pull.branch),
    report(commit, { log = "", steps = [], ...check }) {
      pull.checks.push({ id: pull.nextId(), commit, log, steps, ...check });
    },
    review(by, verdict, comments = []) {
      pull.reviews.push({ id: pull.nextId(), by, verdict, text: "", commit: pull.head() });
      for (const { path, line, text } of comments)
        pull.threads.push({
          id: `T${pull.nextId()}`,
          path,
          line,
          isResolved: false,
          comments: [comment(by, text)],
        });
    },
    comment: (by, text) => void pull.comments.push(comment(by, text)),
    reply(thread, by, text) {
      const made = comment(by, text);
      thread.comments.push(made);
      return made;
    },
    push: (branch, path, text) => remote.commit(branch, { [path]: text }),
    squash() {
      pull.mergeCommit = squashed(remote.folder, pull.into, pull.branch);
      pull.state = "merged";
    },
  };
  return pull;
}

/** Of each name on a commit, the newest report. */
export function newestChecks({ checks }: Pick<KeptPull, "checks">, commit: string): readonly KeptCheck[] {
  const byName = new Map(
    checks.filter((check) => check.commit === commit).map((check) => [check.name, check]),
  );
  return [...byName.values()];
}

function isMergeable(folder: string, into: string, branch: string): boolean {
  try {
    execFileSync("git", ["merge-tree", "--write-tree", into, branch], { cwd: folder, stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

function squashed(folder: string, into: string, branch: string): string {
  const clone = mkdtempSync(join(tmpdir(), "longhaul-squash-"));
  try {
    gitIn(clone, "clone", "-q", folder, ".");
    gitIn(clone, "checkout", "-q", into);
    gitIn(clone, "merge", "-q", "--squash", `origin/${branch}`);
    gitIn(clone, "commit", "-q", "-m", "Squashed");
    gitIn(clone, "push", "-q", "origin", into);
    return gitIn(clone, "rev-parse", "HEAD");
  } finally {
    rmSync(clone, { recursive: true, force: true });
  }
}
