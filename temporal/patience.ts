/**
 * How long a start waits for a service. Refused, unresolvable or a wrong credential ends the wait at once; a host from which no
 * answer comes at all, after 10 s; one that is connected and slow (a database that wakes up, a machine with ten times the work it can
 * do) is waited for, and that is said.
 */
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Client } from "@temporalio/client";

export interface Patience {
  /** Until the host accepts a connection, in ms. */
  readonly answerMs: number;
  /** From then on, in ms. */
  readonly connectMs: number;
  /** Told once, when a service takes longer than 3 s. */
  readonly say?: ((line: string) => void) | undefined;
}

/** Source: the design, exit codes: 10 s, and libpq's usual `connect_timeout` of a minute. */
export const PATIENT = { answerMs: 10_000, connectMs: 60_000 } as const satisfies Patience;
const SLOW_MS = 3_000;

export const within = (timeoutMs: number): Patience => ({ answerMs: timeoutMs, connectMs: timeoutMs });

/** A port or a socket's file. */
export type ListenAddress = { readonly host: string; readonly port: number } | { readonly path: string };

/**
 * @param listenAddress undefined: not knocked at, as behind a proxy
 * @param open connects; is abandoned when its time is up
 * @throws Error of the system if the place refuses; NoAnswer; whatever `open` throws
 */
export async function patiently<T>(
  service: string,
  listenAddress: ListenAddress | undefined,
  { answerMs, connectMs, say }: Patience,
  open: (timeoutMs: number) => Promise<T>,
): Promise<T> {
  const slow =
    say === undefined
      ? undefined
      : setTimeout(
          () => say(`${service} is slow to answer; waiting for up to ${connectMs / 1_000} s …`),
          SLOW_MS,
        );
  try {
    if (listenAddress !== undefined) await knock(listenAddress, answerMs);
    return await withTimeout(open(connectMs), connectMs);
  } finally {
    clearTimeout(slow);
  }
}

/** Whether somebody listens. @throws Error of the system, NoAnswer */
function knock(listenAddress: ListenAddress, timeoutMs: number): Promise<void> {
  const socket = connect(listenAddress);
  const answered = new Promise<void>((resolve, reject) => {
    socket.once("connect", resolve);
    socket.once("error", reject);
  });
  return withTimeout(answered, timeoutMs)
    .catch((error: unknown) => {
      throw error instanceof NoAnswer ? new NoAnswer(`no answer in ${timeoutMs / 1_000} s`) : error;
    })
    .finally(() => socket.destroy());
}

/** Exit code 4 comes within 10 s [U7], and a busy machine's engine may take more than 4 s (measured 2026-11). */
export const PROBE_MS = 7_000;

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
