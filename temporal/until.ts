/** Waits for a condition by polling. */
import { setTimeout as sleep } from "node:timers/promises";

/** Asks until the answer is yes or `timeoutMs` have passed; returns the last answer. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  timeoutMs: number,
  everyMs = 50,
): Promise<boolean> {
  const end = performance.now() + timeoutMs;
  for (;;) {
    if (await condition()) return true;
    if (performance.now() >= end) return false;
    await sleep(everyMs);
  }
}

/** Whether it resolves. Never rejects. */
export function succeeds(promise: Promise<unknown>): Promise<boolean> {
  return promise.then(
    () => true,
    () => false,
  );
}
