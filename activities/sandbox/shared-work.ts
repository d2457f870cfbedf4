/** Abortable waiting, for one caller or for several that share work (aborted when all stop waiting); and taking turns. */

/**
 * The promise's outcome, or the signal's reason as soon as it is aborted; the promise itself continues.
 * @throws the signal's reason
 */
export async function abortable<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  promise.catch(() => undefined);
  signal.throwIfAborted();
  let onAbort = (): void => undefined;
  const aborted = new Promise<never>((_resolve, reject) => {
    onAbort = () => reject(signal.reason as Error);
    signal.addEventListener("abort", onAbort, { once: true });
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

export type SharedWork<T> = ReturnType<typeof shareWork<T>>;

/** Starts work that several callers may wait for. It is aborted when the last of them has stopped waiting. */
export function shareWork<T>(run: (signal: AbortSignal) => Promise<T>) {
  const controller = new AbortController();
  const result = run(controller.signal);
  let isOver = false;
  let waiting = 0;
  const over = result.then(
    () => void (isOver = true),
    () => void (isOver = true),
  );
  return {
    /** Resolves when the work is over, however it ended. Never rejects. */
    over,
    /** False once the work was aborted because no caller was waiting. */
    get canJoin(): boolean {
      return !controller.signal.aborted;
    },
    /** Waits for the work's outcome. @throws the signal's reason as soon as it is aborted */
    async join(signal?: AbortSignal): Promise<T> {
      waiting += 1;
      try {
        return await abortable(result, signal);
      } finally {
        waiting -= 1;
        if (waiting === 0 && !isOver) controller.abort(signal?.reason);
      }
    },
  };
}

const turns = new Map<string, Promise<unknown>>();

/** Runs work of the same name one at a time, within this process. */
export async function inTurn<T>(name: string, run: () => Promise<T>): Promise<T> {
  const turn = (turns.get(name) ?? Promise.resolve()).then(run, run);
  const settled = turn.catch(() => undefined);
  turns.set(name, settled);
  try {
    return await turn;
  } finally {
    if (turns.get(name) === settled) turns.delete(name);
  }
}

/** Caches the answer of `ask` for `ms` milliseconds; a failure is not cached. */
export function cachedFor<T>(ms: number, ask: () => Promise<T>): () => Promise<T> {
  let cached: { readonly answer: Promise<T>; readonly atMs: number } | undefined;
  return () => {
    if (cached !== undefined && performance.now() - cached.atMs <= ms) return cached.answer;
    const request = { answer: ask(), atMs: performance.now() };
    cached = request;
    request.answer.catch(() => {
      if (cached === request) cached = undefined;
    });
    return request.answer;
  };
}
