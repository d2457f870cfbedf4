/** Cuts a list of names for a text. Pure. */

/**
 * The first entries, and how many more there are: none, or at least two, because the name of a last one takes no more room
 * than "and 1 more".
 * @param most one more may be shown
 */
export function firstOf<T>(all: readonly T[], most: number): { readonly shown: T[]; readonly more: number } {
  const shown = all.slice(0, all.length === most + 1 ? all.length : most);
  return { shown, more: all.length - shown.length };
}

/** Such as ` and 3 more`; empty for none. */
export const andMore = (more: number): string => (more > 0 ? ` and ${more} more` : "");
