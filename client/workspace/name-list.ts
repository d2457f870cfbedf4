/** Names of files in a sentence. */
import { oneLine } from "../console/format.ts";

const MAX_NAMES = 5;

/** The first few, and how many more. Whoever chose them: nothing in them steers a terminal. */
export function listed(names: readonly string[]): string {
  const shown = names.slice(0, MAX_NAMES).map((name) => oneLine(name, 120));
  const more = names.length - shown.length;
  return `${shown.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}
