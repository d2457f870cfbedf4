/** What was brought up, taken down again in the opposite order, each once; what fails to go does not keep the others. */
export function createClosers(...first: readonly (() => Promise<unknown>)[]) {
  const closers = [...first];
  return {
    add: (...more: readonly (() => Promise<unknown>)[]) => void closers.push(...more),
    close: async () => {
      for (const one of closers.splice(0).toReversed()) await one().catch(() => undefined);
    },
  };
}
