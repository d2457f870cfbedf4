/** A gate for what may not be done by all at once. */

/** Runs so many at a time, in order; the others wait as long as it takes. */
export function lanes(count: number): <Value>(body: () => Promise<Value>) => Promise<Value> {
  const waiting: (() => void)[] = [];
  let busy = 0;
  return async (body) => {
    if (busy >= count) await new Promise<void>((resolve) => waiting.push(resolve));
    else busy += 1;
    try {
      return await body();
    } finally {
      const next = waiting.shift();
      // Its lane goes to the next one that waits.
      if (next === undefined) busy -= 1;
      else next();
    }
  };
}
