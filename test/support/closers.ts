/** Closes what was started, once each and in reverse order; a failure does not stop the others. */
export function createClosers(...first: readonly (() => Promise<unknown>)[]) {
  const closers = [...first];
  return {
    add: (...more: readonly (() => Promise<unknown>)[]) => void closers.push(...more),
    close: async () => {
      for (const one of closers.splice(0).toReversed()) await one().catch(() => undefined);
    },
  };
}
