/** How the model is told what a save does not hold as it is now. Pure. */
import { namesOf } from "./sandbox-loss.ts";
import type { Skipped } from "../store/workspace-manifest.ts";

const LEFT_OUT = "Not in the saved workspace";
const KEPT = "Not saved as it is now; what was saved of it before is kept";

const REASONS: Readonly<Record<Skipped["reason"], readonly [what: string, why: string]>> = {
  "too-large": [LEFT_OUT, "A file larger than 64 MiB is not saved."],
  "workspace-too-large": [LEFT_OUT, "All files together exceed 256 MiB, so the largest are not saved."],
  "path-too-long": [LEFT_OUT, "A path longer than 4,095 bytes is not saved."],
  "not-readable": [KEPT, "It could not be read."],
  "too-many": [
    KEPT,
    "A save takes 300,000 files and folders at most, and there was no room for this folder's.",
  ],
};

/** @param count of all such paths, named in `files` or not */
export function leftOutNotice(files: readonly Skipped[], count: number): string {
  const lines = Object.entries(REASONS).flatMap(([reason, [what, why]]) => {
    const named = files.filter((file) => file.reason === reason);
    return named.length === 0 ? [] : [`${what}: ${namesOf(named)}. ${why}`];
  });
  if (count > files.length) lines.push(`There are ${count - files.length} more.`);
  lines.push(
    "What is not saved stays in the sandbox, and is gone when that is lost or the session ends: keep a way to make it again.",
  );
  return `[${lines.join(" ")}]`;
}
