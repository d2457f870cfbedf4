/** Commits of this repository as the work they were: files, and the pieces in which each was changed. */
import { execFileSync } from "node:child_process";

export interface Change {
  readonly path: string;
  readonly kind: "added" | "changed" | "removed" | "moved";
  /** Where a moved file was. */
  readonly from: string | undefined;
  readonly before: readonly string[];
  readonly after: readonly string[];
  readonly hunks: readonly Hunk[];
}

/** Lines are counted from 0. */
export interface Hunk {
  readonly beforeFrom: number;
  readonly removed: readonly string[];
  readonly added: readonly string[];
  readonly afterFrom: number;
}

export interface Commit {
  readonly hash: string;
  readonly subject: string;
  readonly changes: readonly Change[];
}

/** Changes so many lines apart are made in one edit. */
const JOINED_LINES = 5;

export class Repository {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Oldest first, without merges. */
  commits(after: string, upTo: string): Commit[] {
    const log = this.#git("log", "--reverse", "--no-merges", "--format=%H%x09%s", `${after}..${upTo}`);
    return linesOf(log).map((line) => {
      const [hash = "", subject = ""] = line.split("\t");
      return { hash, subject, changes: this.#changes(hash) };
    });
  }

  /** Of every file at a commit. */
  files(commit: string): { readonly path: string; readonly mode: number; readonly bytes: Buffer }[] {
    return linesOf(this.#git("ls-tree", "-r", commit)).map((line) => {
      const [head = "", path = ""] = line.split("\t");
      const [mode, , object = ""] = head.split(" ");
      const bytes = execFileSync("git", ["cat-file", "blob", object], { cwd: this.#folder });
      return { path, mode: mode === "100755" ? 0o755 : 0o644, bytes };
    });
  }

  #changes(hash: string): Change[] {
    const list = this.#git("diff-tree", "-r", "-M", "--no-commit-id", "--name-status", hash);
    return linesOf(list).map((line) => {
      const [status = "", first = "", second] = line.split("\t");
      const path = second ?? first;
      const from = second === undefined ? undefined : first;
      const before = status === "A" ? [] : this.#lines(`${hash}^:${first}`);
      const after = status === "D" ? [] : this.#lines(`${hash}:${path}`);
      const kind =
        status === "A" ? "added" : status === "D" ? "removed" : from === undefined ? "changed" : "moved";
      const diff = kind === "changed" || kind === "moved" ? this.#diff(hash, first, path) : "";
      return { path, kind, from, before, after, hunks: hunksOf(diff, before, after) };
    });
  }

  #diff(hash: string, before: string, after: string): string {
    return this.#git("diff", "--no-color", "--no-ext-diff", "-U0", `${hash}^:${before}`, `${hash}:${after}`);
  }

  #lines(object: string): string[] {
    return this.#git("cat-file", "blob", object).split("\n");
  }

  #git(...args: string[]): string {
    return execFileSync("git", ["-c", "core.quotePath=false", ...args], {
      cwd: this.#folder,
      encoding: "utf8",
      maxBuffer: 2 ** 28,
    });
  }
}

function hunksOf(diff: string, before: readonly string[], after: readonly string[]): Hunk[] {
  const spans: { from: number; to: number; afterFrom: number; afterTo: number }[] = [];
  for (const found of diff.matchAll(/^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/gm)) {
    const [one, removed, two, added] = [1, 2, 3, 4].map((at) => Number(found[at] ?? 1)) as [
      number,
      number,
      number,
      number,
    ];
    // An insertion names the line before it.
    const from = removed === 0 ? one : one - 1;
    const afterFrom = added === 0 ? two : two - 1;
    const last = spans.at(-1);
    if (last !== undefined && from - last.to <= JOINED_LINES) {
      last.to = from + removed;
      last.afterTo = afterFrom + added;
    } else spans.push({ from, to: from + removed, afterFrom, afterTo: afterFrom + added });
  }
  return spans.map(({ from, to, afterFrom, afterTo }) => ({
    beforeFrom: from,
    removed: before.slice(from, to),
    added: after.slice(afterFrom, afterTo),
    afterFrom,
  }));
}

function linesOf(text: string): string[] {
  return text.split("\n").filter((line) => line !== "");
}
