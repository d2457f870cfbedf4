/** Caches the answer of `ask` for `ms` milliseconds; a failure is not cached. */
export function keptFor<T>(ms: number, ask: () => Promise<T>): () => Promise<T> {
  let kept: { readonly answer: Promise<T>; readonly atMs: number } | undefined;
  return () => {
    if (kept !== undefined && performance.now() - kept.atMs <= ms) return kept.answer;
    const mine = { answer: ask(), atMs: performance.now() };
    kept = mine;
    mine.answer.catch(() => {
      if (kept === mine) kept = undefined;
    });
    return mine.answer;
  };
}
