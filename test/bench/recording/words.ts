/** What the agent of the recorded task says beside its calls, taken from the commit: its subject and its comments. Pure. */
import type { Change, Commit, Hunk } from "./commits.ts";

const COMMENT = /^\s*(?:\/\/+|\/?\*+|#+)\s?(.*?)(?:\*\/)?\s*$/;
const MAX_WORDS = 320;

/** Why a piece is changed, as its own comments have it. */
export function reasonOf(change: Change, hunk: Hunk | undefined, commit: Commit): string {
  const lines = hunk?.added ?? change.after.slice(0, 12);
  const prose = change.path.endsWith(".md")
    ? lines.filter((line) => line.trim() !== "")
    : lines.flatMap((line) => COMMENT.exec(line)?.[1] ?? []);
  const said = prose
    .join(" ")
    .replace(/^#+\s*|\s*\*\/|\|/g, " ")
    .replace(/\s+/g, " ")
    .trim()
    .slice(0, MAX_WORDS);
  return said.length > 25 ? said : `It belongs to this: ${clauseOf(commit, change.path.length)}.`;
}

/** One of the clauses of the subject. */
export function clauseOf({ subject }: Commit, at: number): string {
  const clauses = subject.split(/[;:] /);
  return clauses[at % clauses.length] ?? subject;
}

/** A name that the commit is about in a file: what an agent would search for. */
export function symbolOf(change: Change): string {
  const lines = change.hunks.flatMap(({ removed, added }) => (removed.length > 0 ? removed : added));
  const names = (lines.length > 0 ? lines : change.after).join("\n").match(/\b[a-z]+(?:[A-Z][a-z]+)+\b/g);
  const [name] = (names ?? []).toSorted((a, b) => b.length - a.length || (a < b ? -1 : 1));
  return name ?? (change.path.split("/").at(-1) ?? change.path).replace(/\..*$/, "");
}
