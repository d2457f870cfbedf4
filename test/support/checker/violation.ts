/** A claim that does not hold, with what a person needs to investigate it. */
export interface Violation {
  /** I1 … I13. */
  readonly claim: string;
  readonly expected: string;
  readonly found: string;
  /** Table and row, request, run. */
  readonly where: string;
}

/** What makes violations of a claim. */
export const violationOf =
  (claim: string) =>
  (where: string, expected: string, found: string): Violation => ({ claim, where, expected, found });

export function describeViolations(list: readonly Violation[]): string {
  return list
    .map(
      ({ claim, expected, found, where }) =>
        `${claim}  at ${where}\n     expected: ${expected}\n     found:    ${found}`,
    )
    .join("\n");
}

/** How often each value occurs. */
export function countsOf<T>(values: Iterable<T>): Map<T, number> {
  const counts = new Map<T, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return counts;
}
