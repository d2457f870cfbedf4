/** The notice to the model about files that a save does not have in their current state. Pure. */
import { namesOf } from "./sandbox-loss.ts";
import type { Skipped } from "../store/workspace-manifest.ts";

const LEFT_OUT = "Not in the saved workspace";
const KEPT = "Current state not saved; the earlier save of it is kept";

const REASONS: Readonly<Record<Skipped["reason"], readonly [what: string, why: string]>> = {
  "too-large": [LEFT_OUT, "A file larger than 64 MiB is not saved."],
  "workspace-too-large": [LEFT_OUT, "All files together exceed 256 MiB, so the largest are not saved."],
  "path-too-long": [LEFT_OUT, "A path longer than 4,095 bytes is not saved."],
  "not-readable": [KEPT, "It could not be read."],
  "too-many": [KEPT, "A save holds at most 300,000 files and folders, and this folder's did not fit."],
};

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
