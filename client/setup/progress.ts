/** One line per action with its reason; the caller decides where it goes (standard error). */
export type Say = (line: string) => void;

/**
 * Runs something that may be slow: announces what it does and why, the elapsed time every 10 s, and the end.
 * Lines, never a spinner: they read the same in a terminal and in a build's log. Each names what it is about, because
 * several things run beside each other.
 */
export async function slowly<T>(say: Say, what: string, action: () => Promise<T>): Promise<T> {
  say(`${what} …`);
  const began = Date.now();
  const seconds = () => Math.round((Date.now() - began) / 1_000);
  const timer = setInterval(() => say(`  still working after ${seconds()} s: ${what}`), 10_000);
  try {
    const result = await action();
    if (seconds() >= 2) say(`  done in ${seconds()} s: ${what}`);
    return result;
  } finally {
    clearInterval(timer);
  }
}

/** Waits for all, so that nothing is left half-started, then throws the first failure. */
export async function allOrFirstFailure<T extends readonly unknown[]>(
  pending: T,
): Promise<{ -readonly [K in keyof T]: Awaited<T[K]> }> {
  await Promise.allSettled(pending);
  return Promise.all(pending);
}
