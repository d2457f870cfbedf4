import type { Client } from "@temporalio/client";

export class NoAnswer extends Error {}

/** Waits for a promise for at most `timeoutMs`; the promise itself is not stopped. @throws NoAnswer when the time is up */
export async function withTimeout<T>(promise: Promise<T>, timeoutMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  promise.catch(() => undefined);
  try {
    return await Promise.race([
      promise,
      new Promise<never>((_, reject) => {
        timer = setTimeout(() => {
          // On a machine that is too busy the answer may have arrived unread: one more look at what is there.
          setImmediate(() => setImmediate(() => reject(new NoAnswer(`no answer in ${timeoutMs} ms`))));
        }, timeoutMs);
      }),
    ]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * A request to Temporal that is cancelled when the time is up. One that is only abandoned is repeated by the SDK after the
 * connection was closed, which ends the process: gRPC throws in a timer.
 * @throws NoAnswer when the time is up
 */
export async function askWithin<T>(
  client: Pick<Client, "withAbortSignal">,
  timeoutMs: number,
  ask: () => Promise<T>,
): Promise<T> {
  const limit = new AbortController();
  try {
    return await withTimeout(client.withAbortSignal(limit.signal, ask), timeoutMs);
  } finally {
    limit.abort();
  }
}
