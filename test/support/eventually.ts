/** Waits for a condition, checking every 20 ms. @throws Error that names the condition */
export async function eventually<T>(
  what: string,
  attempt: () => Promise<T | undefined | false> | T | undefined | false,
  timeoutMs = 45_000,
): Promise<T> {
  const end = Date.now() + timeoutMs;
  for (;;) {
    const found = await attempt();
    if (found !== undefined && found !== false) return found as T;
    if (Date.now() > end) throw new Error(`Not within ${timeoutMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** A promise that hangs fails its own test instead of timing out the suite. @throws Error that says who it was */
export function within<T>(promise: Promise<T>, who: string, timeoutMs: number): Promise<T> {
  const late = new Promise<never>((_resolve, reject) =>
    setTimeout(() => reject(new Error(`${who} has not ended within ${timeoutMs} ms`)), timeoutMs).unref(),
  );
  return Promise.race([promise, late]);
}
