/** The delivery of a session's work to its repository: what is asked for, what came of it, and what it leaves out. */
import { shorten } from "../text/cut.ts";

/** `none`: no delivery was wanted, or there was nothing to deliver. */
export type DeliveryState = "none" | "done" | "refused";

/** A delivery that a person requests after a run has ended: the new run only delivers and asks no model. */
export interface DeliveryOrder {
  readonly push: boolean;
  readonly pr: "none" | "draft" | "ready";
  readonly branch?: string;
  /** Title of the pull request; defaults to the task's first line. */
  readonly title?: string;
  /** The files that were verified: others are refused. */
  readonly tree?: string;
}

export interface FetchedRepository {
  readonly commit: string;
  /** Size of the pack in bytes; 0 if it already existed. */
  readonly bytes: number;
}

export interface PublishInput {
  /** Steps finished. */
  readonly step: number;
  /** `review`: it is written into the pull request that the session reviews. */
  readonly kind: "push" | "pull-request" | "review";
  /** For a push at the run's end: uncommitted work is committed first. */
  readonly end?: true;
  /** A branch other than the session's. */
  readonly branch?: string;
  /** For a pull request: open it as a draft. */
  readonly draft?: boolean;
  readonly title?: string;
  /** The files that were verified: others are refused. */
  readonly tree?: string;
}

export interface Publication {
  /** `nothing`: everything was already delivered, or there was nothing to deliver. */
  readonly outcome: "done" | "refused" | "nothing";
  readonly branch: string;
  readonly commit?: string;
  /** For a push: number of commits on the branch since the session's start. */
  readonly commits?: number;
  /** For a pull request: its URL. */
  readonly url?: string;
  readonly number?: number;
  /** Why the delivery was refused, at most 500 characters. */
  readonly reason?: string;
}

/** Work that a delivery leaves out. */
export interface LeftOutWork {
  readonly path: string;
  readonly reason: string;
  readonly count?: number | undefined;
  readonly about?: string | undefined;
}

const MAX_NAME_CHARS = 120;

/** What it is and how much; a file is its path. */
function leftOutWords({ path, reason, count = 0, about }: LeftOutWork): string {
  const name = shorten(path, MAX_NAME_CHARS);
  const many = (word: string) => (count === 0 ? "" : ` (${count} ${word}${count === 1 ? "" : "s"})`);
  switch (reason) {
    case "branch":
    case "tag":
    case "reference":
      return `the ${reason} ${name}${many("commit")}`;
    case "detached":
      return `the commit ${name} on no branch${many("commit")}`;
    case "stash":
      return `${name}${about === undefined ? "" : ` (${shorten(about, MAX_NAME_CHARS)})`}`;
    case "worktree":
      return `the worktree ${name}${many("change")}`;
    case "no-commit":
      return `the branch ${name} without a commit${many("file")}`;
    case "submodule":
      return `the submodule ${name}${many("commit")}`;
    case "repository":
      return `the repository ${name}`;
    case "not-taken":
      return `${name} (Git does not take it: it cannot be read, is no file, or has a name that Git refuses)`;
    case "hidden":
      return `${name} (changed, and hidden from Git by assume-unchanged or skip-worktree)`;
    default:
      return name;
  }
}

/** One after the other, until `maxChars`; then how many more there are. `count` is the number of all. */
export function listLeftOut(files: readonly LeftOutWork[], count: number, maxChars: number): string {
  const descriptions: string[] = [];
  for (const file of files) {
    const description = leftOutWords(file);
    if (descriptions.length > 0 && descriptions.join(", ").length + description.length > maxChars) break;
    descriptions.push(description);
  }
  const more = count - descriptions.length;
  return `${descriptions.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}
