/** What the model and watchers are told of files that a save, or what was restored from it, does not have. */
import { namesOf } from "./sandbox-loss.ts";
import type { RestoredWorkspace } from "./workspace.ts";
import type { Queryable } from "../store/db.ts";
import type { NewEvent } from "../store/event.ts";
import { addNotice } from "../store/sandboxes.ts";
import type { Skipped } from "../store/workspace-manifest.ts";

/** How many files an event names. */
export const MAX_IN_EVENT = 20;

const LEFT_OUT = "Not in the saved workspace";
const KEPT = "Current state not saved; the earlier save of it is kept";

const REASONS: Readonly<Record<Skipped["reason"], readonly [what: string, why: string]>> = {
  "too-large": [LEFT_OUT, "A file larger than 64 MiB is not saved."],
  "workspace-too-large": [LEFT_OUT, "All files together exceed 256 MiB, so the largest are not saved."],
  "path-too-long": [LEFT_OUT, "A path longer than 4,095 bytes is not saved."],
  "not-readable": [KEPT, "It could not be read."],
  repository: [
    LEFT_OUT,
    "A repository's history is saved whole or not at all, and this one does not fit into the 256 MiB of a save, or has a part outside of /workspace (a separate folder, borrowed objects).",
  ],
  "repository-as-before": [
    KEPT,
    "A repository's history is saved whole or not at all, and this one has grown beyond the 256 MiB of a save, or has a part that cannot be read, or one outside of /workspace (a separate folder, borrowed objects).",
  ],
  "too-many": [KEPT, "A save holds at most 300,000 files and folders, and this folder's did not fit."],
};

/**
 * What a restore could not bring back. Its absence is marked in Git's index, so that no commit takes it for a deletion.
 * @param count of all, including those not in `files`
 */
function notRestoredNotice(files: readonly { readonly path: string }[], count: number): string {
  const named = files.map(({ path }) => ({ path, bytes: 0 }));
  return (
    `[Not in the saves, so not restored: ${namesOf(named)}${count > files.length ? `, and more: ${count} in all` : ""}. ` +
    "They were not deleted: do not commit or report it so. Git passes over the absence of those that it tracks; one that you make again is added with `git update-index --no-skip-worktree PATH`.]"
  );
}

/** @param count of all skipped paths, including those not in `files` */
export function skippedFilesNotice(files: readonly Skipped[], count: number): string {
  const lines = Object.entries(REASONS).flatMap(([reason, [what, why]]) => {
    const named = files.filter((file) => file.reason === reason);
    return named.length === 0 ? [] : [`${what}: ${namesOf(named)}. ${why}`];
  });
  const more = count - files.length;
  if (more > 0) lines.push(`There ${more === 1 ? "is" : "are"} ${more} more.`);
  lines.push(
    "What is not saved exists only in the sandbox, until that is lost or the session ends: make sure that you can recreate it.",
  );
  return `[${lines.join(" ")}]`;
}

/** Tells the model what is not in the files that it finds. @returns the event for watchers, if there is something */
export async function reportNotRestored(
  tx: Queryable,
  { id, step }: { readonly id: string; readonly step: number },
  restored: Omit<RestoredWorkspace, "manifest"> | undefined,
): Promise<NewEvent[]> {
  if (restored === undefined || restored.notRestoredCount === 0) return [];
  const { notRestored, notRestoredCount: count } = restored;
  const files = notRestored.map(({ path, reason }) => ({ path: path.toWellFormed(), bytes: 0, reason }));
  await addNotice(tx, id, notRestoredNotice(files, count));
  return [{ type: "sandbox:left-out", step, data: { count, files: files.slice(0, MAX_IN_EVENT) } }];
}
