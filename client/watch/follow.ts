/**
 * A session's events from any point on, each once and in order, live: woken by Postgres, and by asking once a second
 * where a wake-up is lost. Outlives restarts of Postgres and Temporal.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { SessionEvent } from "../../activities/store/event.ts";
import { listen, readEvents } from "../../activities/store/events.ts";
import { findSession } from "../../activities/store/reading.ts";
import type { Store } from "../../activities/store/db.ts";
import type { RunDescription } from "../connect/describe-run.ts";

const POLL_MS = 1_000;
/** How long nothing is heard before Temporal is asked whether the run still exists. */
const QUIET_MS = 3_000;
const RETRY_MS = [200, 500, 1_000, 2_000, 5_000];
/** The row is written just before the workflow closes; a run without it for this long has no more to say. */
const CLOSED_GRACE_MS = 3_000;
const END_GRACE_MS = 1_000;
const END_POLL_MS = 100;
const PAGE = 500;

export type FollowItem =
  | { readonly kind: "event"; readonly event: SessionEvent; readonly live: boolean }
  /** All that was there has been read: what follows happens now. */
  | { readonly kind: "caught-up" }
  | { readonly kind: "lost"; readonly message: string }
  | { readonly kind: "back" }
  | { readonly kind: "tick" }
  /** Nothing comes since an activity fails again and again. */
  | { readonly kind: "trouble"; readonly message: string }
  | FollowEnd;

export interface FollowEnd {
  readonly kind: "ended";
  readonly status: string;
  readonly result: string;
  readonly lastSeq: number;
  /** Why, where no event says it: terminated from outside, lost. */
  readonly reason: string | undefined;
}

export interface Follow {
  readonly store: Store;
  readonly sessionId: string;
  readonly afterSeq: number;
  readonly signal: AbortSignal;
  /** Temporal's word on the run; undefined while it cannot be asked. */
  readonly describe: () => Promise<RunDescription | undefined>;
}

/** Ends with the session's end, or when aborted. */
export async function* follow(options: Follow): AsyncGenerator<FollowItem> {
  const { store, sessionId, signal } = options;
  const waker = createWaker(store, sessionId, signal);
  let afterSeq = options.afterSeq;
  let failures = 0;
  let caughtUp = false;
  let quietSince = performance.now();
  let closedSince: number | undefined;
  let endHeard = false;
  let endedSince: number | undefined;
  let trouble: string | undefined;
  try {
    while (!signal.aborted) {
      let page: SessionEvent[];
      let row;
      try {
        waker.prepare();
        page = await readEvents(store.db, sessionId, afterSeq, PAGE);
        row = page.length === 0 ? await findSession(store.db, sessionId) : undefined;
        if (failures > 0) yield { kind: "back" };
        failures = 0;
      } catch (error) {
        if (failures++ === 0)
          yield { kind: "lost", message: error instanceof Error ? error.message : String(error) };
        await pause(RETRY_MS[Math.min(failures, RETRY_MS.length) - 1] ?? POLL_MS, signal);
        continue;
      }
      for (const event of page) {
        afterSeq = event.seq;
        if (event.type.startsWith("session:")) endHeard = event.type === "session:ended";
        yield { kind: "event", event, live: caughtUp };
      }
      if (page.length > 0) {
        quietSince = performance.now();
        continue;
      }
      if (!caughtUp) {
        caughtUp = true;
        yield { kind: "caught-up" };
      }
      if (row !== undefined && row.status !== "active" && row.status !== "waiting") {
        // Its last event may have come between the two readings; a run that goes on was just taken up again, or is
        // about to close.
        endedSince ??= performance.now();
        const open = (await options.describe())?.status === "RUNNING";
        if (open || (!endHeard && performance.now() - endedSince < END_GRACE_MS)) {
          await waker.wait(END_POLL_MS);
          continue;
        }
        yield {
          kind: "ended",
          status: row.status,
          result: row.result ?? "",
          lastSeq: afterSeq,
          reason: undefined,
        };
        return;
      }
      endedSince = undefined;
      if (performance.now() - quietSince >= QUIET_MS) {
        quietSince = performance.now();
        const run = await options.describe();
        const end = endOf(run?.status);
        if (run?.trouble !== undefined && run.trouble !== trouble)
          yield { kind: "trouble", message: run.trouble };
        trouble = run?.trouble;
        if (end === undefined) closedSince = undefined;
        else if (closedSince !== undefined && performance.now() - closedSince >= CLOSED_GRACE_MS) {
          yield { kind: "ended", ...end, result: row?.result ?? "", lastSeq: afterSeq };
          return;
        } else closedSince ??= performance.now();
      }
      yield { kind: "tick" };
      await waker.wait(POLL_MS);
    }
  } finally {
    waker.close();
  }
}

/** What a closed run means that did not say so itself. */
function endOf(status = ""): { status: string; reason: string } | undefined {
  switch (status) {
    case "TERMINATED":
      return {
        status: "cancelled",
        reason: "The run was terminated in Temporal; the session can be resumed.",
      };
    case "CANCELLED":
      return { status: "cancelled", reason: "The run was cancelled before it could write its outcome." };
    case "TIMED_OUT":
      return { status: "failed", reason: "The run exceeded its time limit in Temporal." };
    case "FAILED":
      return {
        status: "failed",
        reason: "The run failed before it could write its outcome: see the Web UI.",
      };
    case "COMPLETED":
      return { status: "failed", reason: "The run completed without writing its outcome." };
    case "GONE":
      return { status: "failed", reason: "Temporal has no such run (any more); the session can be resumed." };
    default:
      return undefined;
  }
}

/** Wakes on a notification; falls back to time where there is no connection to listen on. */
function createWaker(store: Store, sessionId: string, signal: AbortSignal) {
  let woken = false;
  let onWake: (() => void) | undefined;
  let stop: (() => void) | undefined;
  let listening = false;
  let closed = false;
  const wake = () => {
    woken = true;
    onWake?.();
  };
  signal.addEventListener("abort", wake, { once: true });
  return {
    /** Call before reading: what is written from now on wakes. */
    prepare: () => {
      woken = false;
      if (listening || closed) return;
      listening = true;
      listen(store, sessionId, wake, () => (listening = false)).then(
        (end) => {
          if (closed) end();
          else stop = end;
          // What came between the last reading and now was not heard.
          wake();
        },
        () => (listening = false),
      );
    },
    wait: (timeoutMs: number) =>
      new Promise<void>((resolve) => {
        if (woken || signal.aborted) return resolve();
        const timer = setTimeout(resolve, timeoutMs);
        onWake = () => {
          clearTimeout(timer);
          resolve();
        };
      }).finally(() => (onWake = undefined)),
    close: () => {
      closed = true;
      signal.removeEventListener("abort", wake);
      stop?.();
    },
  };
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => undefined);
}
