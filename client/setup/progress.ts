/** One line per thing done and why; the caller decides where it goes (standard error). */
export type Say = (line: string) => void;

/**
 * Does something that may be slow: says what and why at once, how long it has taken each 10 s, and that it is done.
 * Lines, never a spinner: they read the same in a terminal and in a build's log.
 */
export async function slowly<T>(say: Say, what: string, work: () => Promise<T>): Promise<T> {
  say(`${what} …`);
  const began = Date.now();
  const seconds = () => Math.round((Date.now() - began) / 1_000);
  const timer = setInterval(() => say(`  still working after ${seconds()} s: ${what}`), 10_000);
  try {
    const result = await work();
    if (seconds() >= 2) say(`  done in ${seconds()} s`);
    return result;
  } finally {
    clearInterval(timer);
  }
}
