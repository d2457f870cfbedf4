/** Work that a delivery leaves out, in words. Pure. */
import { shorten } from "./cut-text.ts";

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
    case "hidden":
      return `${name} (changed, and hidden from Git by assume-unchanged or skip-worktree)`;
    default:
      return name;
  }
}

/** One after the other, until `maxChars`; then how many more there are. `count` is the number of all. */
export function listLeftOut(files: readonly LeftOutWork[], count: number, maxChars: number): string {
  const said: string[] = [];
  for (const file of files) {
    const words = leftOutWords(file);
    if (said.length > 0 && said.join(", ").length + words.length > maxChars) break;
    said.push(words);
  }
  const more = count - said.length;
  return `${said.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}
