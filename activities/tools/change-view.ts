import { structuredPatch } from "diff";
import { cutChars } from "../text/cut.ts";
import { firstOf } from "../text/lists.ts";

const CONTEXT_LINES = 2;
const MAX_LINES = 60;
const MAX_LINE_CHARS = 200;

/** A short unified diff of a change with line numbers, for the model and for people. */
export function changeView(before: string, after: string): string {
  const patch = structuredPatch("a", "b", before, after, undefined, undefined, {
    context: CONTEXT_LINES,
    // A diff of a completely rewritten file is not worth the time.
    maxEditLength: 2_000,
    timeout: 1_000,
  });
  if (patch === undefined) return "(the change is too large to show)";
  const lines = patch.hunks.flatMap((hunk) => [
    `@@ -${hunk.oldStart},${hunk.oldLines} +${hunk.newStart},${hunk.newLines} @@`,
    ...hunk.lines.map((line) => (line.length > MAX_LINE_CHARS ? `${cutChars(line, MAX_LINE_CHARS)}…` : line)),
  ]);
  const { shown, more } = firstOf(lines, MAX_LINES);
  return [...shown, ...(more > 0 ? [`(${more} more lines of the change)`] : [])].join("\n");
}
