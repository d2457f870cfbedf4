/**
 * A session's live events from any point on, in order, each once. Postgres notifies of new events; polling once a second
 * covers lost notifications. Survives restarts of Postgres and Temporal.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { SessionEvent } from "../../activities/store/event.ts";
import { readEvents, restoredTo } from "../../activities/store/events.ts";
import { parseOutput } from "../../activities/config/output-schema.ts";
import { knownConfig } from "../sessions/status-document.ts";
import { findSessionRow, type SessionRow } from "../../activities/store/reading.ts";
import type { Store } from "../../activities/store/db.ts";
import { listen } from "../../activities/store/announcements.ts";
import type { RunDescription } from "../connect/describe-run.ts";
import { plainReason } from "../../temporal/service-missing.ts";

const POLL_MS = 1_000;
/** Time without events after which Temporal is asked whether the run still exists. */
const QUIET_MS = 3_000;
const RETRY_MS = [200, 500, 1_000, 2_000, 5_000];
/** The row is written just before the workflow closes. If a closed run has not written it after this time, it never will. */
const CLOSED_GRACE_MS = 3_000;
const END_GRACE_MS = 1_000;
const END_POLL_MS = 100;
const PAGE = 500;

export type FollowItem =
  | { readonly kind: "event"; readonly event: SessionEvent; readonly live: boolean }
  /** All earlier events have been read: what follows is live. */
  | { readonly kind: "caught-up" }
  | { readonly kind: "lost"; readonly message: string }
  | { readonly kind: "back" }
  /** The database was restored from an older copy: what follows has numbers from here on, which others had before. */
  | { readonly kind: "restored"; readonly toSeq: number }
  | { readonly kind: "tick" }
  /** Running commands' last output, by the key of their calls. */
  | { readonly kind: "output"; readonly lines: ReadonlyMap<string, string> }
  /** No events arrive because an activity fails repeatedly. */
  | { readonly kind: "trouble"; readonly message: string }
  | FollowEnd;

export interface FollowEnd {
  readonly kind: "ended";
  readonly status: string;
  readonly result: string;
  /** The result is JSON, requested by a schema. */
  readonly isJson?: true;
  readonly lastSeq: number;
  /** The reason, if no event shows it: terminated from outside, or lost. */
  readonly reason: string | undefined;
}

export interface Follow {
  readonly store: Store;
  readonly sessionId: string;
  readonly afterSeq: number;
  readonly signal: AbortSignal;
  /** Default: a connection of its own while it follows. */
  readonly listen?: Listen;
  /** Describes the run in Temporal; undefined while Temporal does not answer. */
  readonly describe: () => Promise<RunDescription | undefined>;
}

/** Calls `onWake` when the session has news, until the returned function is called. */
export type Listen = (sessionId: string, onWake: () => void, onLost: () => void) => Promise<() => void>;

/** Ends when the session ends, or when aborted. */
export async function* follow(options: Follow): AsyncGenerator<FollowItem> {
  const waker = new Waker(options);
  const follower = new Follower(options, waker);
  try {
    while (!options.signal.aborted && !follower.ended) yield* follower.readNew();
  } finally {
    waker.close();
  }
}

class Follower {
  readonly #options: Follow;
  readonly #waker: Waker;
  #afterSeq: number;
  #last: SessionEvent | undefined;
  #failures = 0;
  #caughtUp = false;
  #quietSince = performance.now();
  /** When Temporal was first seen to have closed the run, and when the row first showed the end. */
  #closedSince: number | undefined;
  #endedSince: number | undefined;
  #endHeard = false;
  #trouble: string | undefined;
  ended = false;

  constructor(options: Follow, waker: Waker) {
    this.#options = options;
    this.#waker = waker;
    this.#afterSeq = options.afterSeq;
  }

  /** Reads once and yields new events; waits if there are none. */
  async *readNew(): AsyncGenerator<FollowItem> {
    const { store, sessionId, signal } = this.#options;
    let page: SessionEvent[];
    let row: SessionRow | undefined;
    let restored: number | undefined;
    try {
      this.#waker.prepare();
      page = await readEvents(store.db, sessionId, this.#afterSeq, PAGE);
      const isEnd = page.length === 0;
      row = isEnd ? await findSessionRow(store.db, sessionId) : undefined;
      // After the page: one that was read behind a restore is not taken.
      if (isEnd || this.#last !== undefined)
        restored = await restoredTo(store.db, sessionId, { seq: this.#afterSeq, last: this.#last });
    } catch (error) {
      if (this.#failures++ === 0) yield { kind: "lost", message: plainReason(error) };
      const waitMs = RETRY_MS[Math.min(this.#failures, RETRY_MS.length) - 1] ?? POLL_MS;
      await sleep(waitMs, undefined, { signal }).catch(() => undefined);
      return;
    }
    if (this.#failures > 0) yield { kind: "back" };
    this.#failures = 0;
    if (restored !== undefined) {
      this.#afterSeq = restored;
      this.#last = undefined;
      yield { kind: "restored", toSeq: restored };
      return;
    }
    for (const event of page) {
      this.#afterSeq = event.seq;
      if (event.type !== "llm:chunk") this.#last = event;
      if (event.type.startsWith("session:")) this.#endHeard = event.type === "session:ended";
      yield { kind: "event", event, live: this.#caughtUp };
    }
    if (page.length > 0) {
      this.#quietSince = performance.now();
      return;
    }
    if (!this.#caughtUp) yield { kind: "caught-up" };
    this.#caughtUp = true;
    if (row !== undefined && row.status !== "active" && row.status !== "waiting") yield* this.#end(row);
    else yield* this.#idle(row?.result ?? "");
  }

  /** The row shows that the session has ended. */
  async *#end(row: SessionRow): AsyncGenerator<FollowItem> {
    // The last event may have been written between the two reads. An open run was just resumed, or is about to close.
    this.#endedSince ??= performance.now();
    const open = (await this.#options.describe())?.status === "RUNNING";
    if (open || (!this.#endHeard && performance.now() - this.#endedSince < END_GRACE_MS))
      return this.#waker.wait(END_POLL_MS);
    this.ended = true;
    const { status, result } = row;
    const output = parseOutput(knownConfig(row.config), row);
    yield {
      kind: "ended",
      status,
      ...(output === undefined ? { result: result ?? "" } : { result: output.text, isJson: true as const }),
      lastSeq: this.#afterSeq,
      reason: undefined,
    };
  }

  /** No news: after a while Temporal is asked whether the run still exists. */
  async *#idle(result: string): AsyncGenerator<FollowItem> {
    this.#endedSince = undefined;
    if (performance.now() - this.#quietSince >= QUIET_MS) {
      this.#quietSince = performance.now();
      const run = await this.#options.describe();
      // The same trouble with another attempt number is not reported again.
      const trouble = run?.trouble?.replace(/, attempt \d+:/, ":");
      if (run?.trouble !== undefined && trouble !== this.#trouble)
        yield { kind: "trouble", message: run.trouble };
      this.#trouble = trouble;
      if (run?.output !== undefined && run.output.size > 0) yield { kind: "output", lines: run.output };
      const end = endOf(run?.status);
      this.#closedSince = end && (this.#closedSince ?? performance.now());
      if (
        end !== undefined &&
        this.#closedSince !== undefined &&
        performance.now() - this.#closedSince >= CLOSED_GRACE_MS
      ) {
        this.ended = true;
        yield { kind: "ended", ...end, result, lastSeq: this.#afterSeq };
        return;
      }
    }
    yield { kind: "tick" };
    await this.#waker.wait(POLL_MS);
  }
}

const CANCELLED = new Map([
  ["TERMINATED", "The run was terminated in Temporal; the session can be resumed."],
  ["CANCELLED", "The run was cancelled before it could write its outcome."],
]);
const FAILED = new Map([
  ["TIMED_OUT", "The run exceeded its time limit in Temporal."],
  ["FAILED", "The run failed before it could write its outcome: see the Web UI."],
  ["COMPLETED", "The run completed without writing its outcome."],
  ["GONE", "Temporal no longer has the run; the session can be resumed."],
]);

/** The outcome of a closed run that could not store it. */
function endOf(status = ""): { status: string; reason: string } | undefined {
  const reason = CANCELLED.get(status) ?? FAILED.get(status);
  if (reason === undefined) return undefined;
  return { status: CANCELLED.has(status) ? "cancelled" : "failed", reason };
}

/** Wakes on a notification; falls back to polling without a connection to listen on. */
class Waker {
  readonly #options: Follow;
  #woken = false;
  #onWake: (() => void) | undefined;
  #stop: (() => void) | undefined;
  #listening = false;
  #closed = false;

  constructor(options: Follow) {
    this.#options = options;
    options.signal.addEventListener("abort", this.#wake, { once: true });
  }

  readonly #wake = () => {
    this.#woken = true;
    this.#onWake?.();
  };

  /** Call before reading, so that later writes wake the reader. */
  prepare(): void {
    this.#woken = false;
    if (this.#listening || this.#closed) return;
    this.#listening = true;
    const onLost = () => (this.#listening = false);
    const { store, sessionId } = this.#options;
    const listenToStore: Listen = (...to) => listen(store, ...to);
    (this.#options.listen ?? listenToStore)(sessionId, this.#wake, onLost).then((stop) => {
      if (this.#closed) stop();
      else this.#stop = stop;
      // Notifications since the last read were missed.
      this.#wake();
    }, onLost);
  }

  async wait(timeoutMs: number): Promise<void> {
    if (this.#woken || this.#options.signal.aborted) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, timeoutMs);
    this.#onWake = resolve;
    await promise;
    clearTimeout(timer);
    this.#onWake = undefined;
  }

  close(): void {
    this.#closed = true;
    this.#options.signal.removeEventListener("abort", this.#wake);
    this.#stop?.();
  }
}
