/** What the model and watchers are told of files that a save, or what was restored from it, does not have. */
import type { Queryable } from "../store/db.ts";
import type { NewEvent } from "../store/event.ts";
import { addNotice } from "../store/sandboxes.ts";
import type { Skipped } from "../store/workspace-manifest.ts";
import { describeFiles } from "./sandbox-loss.ts";
import { LIMITS, type SaveLimits } from "./save-limits.ts";
import type { RestoredWorkspace } from "./workspace.ts";

/** How many files an event names. */
export const MAX_IN_EVENT = 20;

const LEFT_OUT = "Not in the saved workspace";
const KEPT = "Current state not saved; the earlier save of it is kept";

type Words = readonly [what: string, why: string];

/** Of one save, with these limits. */
function reasonWords({ fileBytes, bytes }: SaveLimits): Readonly<Record<Skipped["reason"], Words>> {
  const [file, all] = [inUnits(fileBytes), inUnits(bytes)];
  const isInPostgres = bytes === LIMITS.bytes;
  const more = isInPostgres ? " Set LONGHAUL_STORE to keep them." : "";
  return {
    "too-large": [
      isInPostgres ? `Files of more than ${file} are not saved in Postgres` : LEFT_OUT,
      isInPostgres ? more.trim() : `A file larger than ${file} is not saved.`,
    ],
    "workspace-too-large": [
      LEFT_OUT,
      `All files together exceed ${all}, so the largest are not saved.${more}`,
    ],
    "path-too-long": [LEFT_OUT, "A path longer than 4,095 bytes is not saved."],
    "not-readable": [KEPT, "It could not be read."],
    repository: [
      LEFT_OUT,
      `A repository's history is saved whole or not at all, and this one does not fit into the ${all} of a save, or has a part outside of /workspace (a separate folder, borrowed objects).`,
    ],
    "repository-as-before": [
      KEPT,
      `A repository's history is saved whole or not at all, and this one has grown beyond the ${all} of a save, or has a part that cannot be read, or one outside of /workspace (a separate folder, borrowed objects).`,
    ],
    "too-many": [KEPT, "A save holds at most 300,000 files and folders, and this folder's did not fit."],
  };
}

const inUnits = (bytes: number): string =>
  bytes < 2 ** 30 ? `${bytes / 2 ** 20} MiB` : `${bytes / 2 ** 30} GiB`;

/**
 * What a restore could not bring back. Its absence is marked in Git's index, so that no commit takes it for a deletion.
 * @param count of all, including those not in `files`
 */
function notRestoredNotice(files: readonly { readonly path: string }[], count: number): string {
  const entries = files.map(({ path }) => ({ path, bytes: 0 }));
  return (
    `[Not in the saves, so not restored: ${describeFiles(entries)}${count > files.length ? `, and more: ${count} in all` : ""}. ` +
    "They were not deleted: do not commit or report it so. Git passes over the absence of those that it tracks; one that you make again is added with `git update-index --no-skip-worktree PATH`.]"
  );
}

/** @param count of all skipped paths, including those not in `files` */
export function skippedFilesNotice(files: readonly Skipped[], count: number, limits: SaveLimits): string {
  const lines = Object.entries(reasonWords(limits)).flatMap(([reason, [what, why]]) => {
    const matching = files.filter((file) => file.reason === reason);
    return matching.length === 0 ? [] : [`${what}: ${describeFiles(matching)}. ${why}`];
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
