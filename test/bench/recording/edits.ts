/** The pieces of a change as calls of the editing tools, each with so many lines around it as make it unique. Pure. */
import type { Change, Hunk } from "./commits.ts";

export interface Edit {
  readonly path: string;
  readonly oldString: string;
  readonly newString: string;
  readonly hunk: Hunk;
}

const MAX_AROUND = 12;

/** @returns undefined where a piece cannot be told from another place: the file is written anew then */
export function editsOf(change: Change): Edit[] | undefined {
  let current = [...change.before];
  const edits: Edit[] = [];
  for (const hunk of change.hunks) {
    const at = hunk.afterFrom;
    const edit = unique(change.path, current, at, hunk);
    if (edit === undefined) return undefined;
    edits.push(edit);
    current = [...current.slice(0, at), ...hunk.added, ...current.slice(at + hunk.removed.length)];
  }
  return current.join("\n") === change.after.join("\n") ? edits : undefined;
}

function unique(path: string, current: readonly string[], at: number, hunk: Hunk): Edit | undefined {
  const text = current.join("\n");
  for (let around = 1; around <= MAX_AROUND; around += 1) {
    const from = Math.max(0, at - around);
    const to = Math.min(current.length, at + hunk.removed.length + around);
    const above = current.slice(from, at);
    const below = current.slice(at + hunk.removed.length, to);
    const oldString = [...above, ...hunk.removed, ...below].join("\n");
    const newString = [...above, ...hunk.added, ...below].join("\n");
    if (oldString.trim().length > 10 && text.split(oldString).length === 2)
      return { path, oldString, newString, hunk };
  }
  return undefined;
}

/** Several small pieces as one patch. */
export function patchOf(edits: readonly Edit[]): string {
  const byPath = Map.groupBy(edits, ({ path }) => path);
  const files = [...byPath].map(([path, list]) => {
    const pieces = list.map(({ oldString, newString }) => `@@\n${diffLines(oldString, newString)}`);
    return `*** Update File: ${path}\n${pieces.join("\n")}`;
  });
  return `*** Begin Patch\n${files.join("\n")}\n*** End Patch`;
}

function diffLines(oldString: string, newString: string): string {
  const [before, after] = [oldString.split("\n"), newString.split("\n")];
  let head = 0;
  while (head < before.length && head < after.length && before[head] === after[head]) head += 1;
  let tail = 0;
  while (
    tail < before.length - head &&
    tail < after.length - head &&
    before.at(-1 - tail) === after.at(-1 - tail)
  )
    tail += 1;
  return [
    ...before.slice(0, head).map((line) => ` ${line}`),
    ...before.slice(head, before.length - tail).map((line) => `-${line}`),
    ...after.slice(head, after.length - tail).map((line) => `+${line}`),
    ...before.slice(before.length - tail).map((line) => ` ${line}`),
  ].join("\n");
}
