/** Names in a text: lists that are cut; which of them a word may have meant; patterns of them. */

/**
 * The first entries, and how many more there are: none, or at least two, because the name of a last one takes no more room
 * than "and 1 more".
 * @param most one more may be shown
 */
export function takeFirst<T>(
  all: readonly T[],
  most: number,
): { readonly shown: T[]; readonly more: number } {
  const beginning = all.slice(0, all.length === most + 1 ? all.length : most);
  return { shown: beginning, more: all.length - beginning.length };
}

/** Such as ` and 3 more`; empty for none. */
export const andMore = (more: number): string => (more > 0 ? ` and ${more} more` : "");

/** The candidate closest to a word, if one is close enough to be a likely typo. */
export function nearest(word: string, candidates: readonly string[]): string | undefined {
  const limit = Math.max(1, Math.floor(Math.max(word.length, 3) / 2.5));
  let best: { readonly candidate: string; readonly distance: number } | undefined;
  for (const candidate of candidates) {
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase());
    if (distance <= limit && (best === undefined || distance < best.distance)) best = { candidate, distance };
  }
  return best?.candidate;
}

/** Edit distance: insertions, deletions, replacements and swaps of neighbours between two words. */
export function editDistance(from: string, to: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let i = 1; i <= from.length; i++) {
    const row = [i];
    for (let j = 1; j <= to.length; j++) {
      const same = from[i - 1] === to[j - 1];
      let cost = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (last[j - 1] ?? 0) + (same ? 0 : 1));
      const swapped = i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1];
      if (swapped) cost = Math.min(cost, (beforeLast[j - 2] ?? 0) + 1);
      row.push(cost);
    }
    beforeLast = last;
    last = row;
  }
  return last[to.length] ?? 0;
}

/**
 * Whether a pattern matches a whole name: `*` matches any characters, also none. No regular expression: one with many `*` would
 * practically never finish. The name is read once, with all places of the pattern that it may have come to, so the time grows with
 * the name's length times the pattern's, no faster.
 * @param anything a character of the name that stands for any text: then, whether some text would match
 */
export function fitsPattern(pattern: string, name: string, anything?: string): boolean {
  const end = pattern.length;
  let [reached, next] = [new Uint8Array(end + 1), new Uint8Array(end + 1)];
  reached[0] = 1;
  passStars(pattern, reached);
  for (const char of name.split("")) {
    const first = reached.indexOf(1);
    if (first === -1) return false;
    if (reached[end] === 1 && pattern.endsWith("*")) return true;
    next.fill(0);
    if (char === anything) next.fill(1, first);
    else
      for (let at = first; at < end; at += 1) {
        if (reached[at] === 0) continue;
        if (pattern[at] === "*") next[at] = 1;
        else if (pattern[at] === char) next[at + 1] = 1;
      }
    passStars(pattern, next);
    [reached, next] = [next, reached];
  }
  return reached[end] === 1;
}

/** A `*` may match nothing, so the place after it is reached as well. */
function passStars(pattern: string, reached: Uint8Array): void {
  for (let at = reached.indexOf(1); at !== -1 && at < pattern.length; at += 1)
    if (reached[at] === 1 && pattern[at] === "*") reached[at + 1] = 1;
}
