export type Closers = ReturnType<typeof createClosers>;

/** Closes what was started, once each and in reverse order; a failure does not stop the others. */
export function createClosers(...first: readonly (() => Promise<unknown>)[]) {
  const closers = [...first];
  return {
    add: (...more: readonly (() => Promise<unknown>)[]) => void closers.push(...more),
    close: async () => {
      for (const end of closers.splice(0).toReversed()) await end().catch(() => undefined);
    },
  };
}

/** What `make` starts, and its end. Where it fails, what was started by then is closed. */
export async function closable<T extends object>(
  first: () => Promise<unknown>,
  make: (add: Closers["add"]) => Promise<T>,
): Promise<T & { close(): Promise<void> }> {
  const { add, close } = createClosers(first);
  try {
    return { ...(await make(add)), close };
  } catch (error) {
    await close();
    throw error;
  }
}
