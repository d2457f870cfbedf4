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
  const shown = all.slice(0, all.length === most + 1 ? all.length : most);
  return { shown, more: all.length - shown.length };
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

/** Whether a pattern matches a whole name. No regular expression: one with many `*` would practically never finish. */
export function fitsPattern(pattern: string, name: string): boolean {
  const [start = "", ...rest] = pattern.split("*");
  const end = rest.pop();
  if (end === undefined) return name === pattern;
  if (name.length < start.length + end.length || !name.startsWith(start) || !name.endsWith(end)) return false;
  let place = start.length;
  for (const part of rest) {
    const found = name.indexOf(part, place);
    if (found === -1) return false;
    place = found + part.length;
  }
  return place <= name.length - end.length;
}
