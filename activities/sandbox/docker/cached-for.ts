/** Caches the answer of `ask` for `ms` milliseconds; a failure is not cached. */
export function cachedFor<T>(ms: number, ask: () => Promise<T>): () => Promise<T> {
  let cached: { readonly answer: Promise<T>; readonly atMs: number } | undefined;
  return () => {
    if (cached !== undefined && performance.now() - cached.atMs <= ms) return cached.answer;
    const asked = { answer: ask(), atMs: performance.now() };
    cached = asked;
    asked.answer.catch(() => {
      if (cached === asked) cached = undefined;
    });
    return asked.answer;
  };
}
