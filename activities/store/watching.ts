/**
 * Who watches a session. A watcher listens on the session's channel, holds a shared lock by the session's key for as long as its
 * connection lives, and announces itself to the workers once: so a writer knows its watchers without asking, and the lock
 * of a watcher that died is released.
 */
import { createHash } from "node:crypto";
import type pg from "pg";
import type { Store } from "./db.ts";

/** The class of watchers' advisory locks in the database. Any number, the same in every version. */
export const WATCH_CLASS = 7_305_145;
/** The channel on which workers learn of new watches: the session's key. */
export const WATCHED_CHANNEL = "longhaul_watched";

/** A session's number for locks and channels. Two sessions that share one, about once in 100,000, wake each other's watchers. */
export function watchKey(sessionId: string): number {
  return createHash("md5").update(sessionId).digest().readInt32BE(0);
}

export function channelOf(key: number): string {
  return `longhaul_session_${key >>> 0}`;
}

/** One connection that listens for any number of sessions. */
export interface Listener {
  /** Calls `onWake` when the session has new events. Resolves once the watch is set up. */
  watch(sessionId: string, onWake: () => void): Promise<void>;
  unwatch(sessionId: string): void;
  /** Ends the listener and its connection. */
  readonly end: () => void;
}

/** @param onLost is called when the connection is lost: then open another listener. Polling remains the fallback */
export async function openListener(store: Store, onLost: () => void): Promise<Listener> {
  const wakes = new Map<string, () => void>();
  const { client, end } = await dedicated(store, onLost, (channel) => wakes.get(channel)?.());
  return {
    async watch(sessionId, onWake) {
      const key = watchKey(sessionId);
      wakes.set(channelOf(key), onWake);
      await client.query(`listen ${channelOf(key)}`);
      await client.query("select pg_advisory_lock_shared($1, $2), pg_notify($3, $4)", [
        WATCH_CLASS,
        key,
        WATCHED_CHANNEL,
        String(key),
      ]);
    },
    unwatch(sessionId) {
      const key = watchKey(sessionId);
      wakes.delete(channelOf(key));
      client.query(`unlisten ${channelOf(key)}`).catch(() => undefined);
      client.query("select pg_advisory_unlock_shared($1, $2)", [WATCH_CLASS, key]).catch(() => undefined);
    },
    end,
  };
}

/** Calls `onWake` when the session has new events, on a connection of its own. Resolves with a function that ends this. */
export async function listen(
  store: Store,
  sessionId: string,
  onWake: () => void,
  onLost: () => void,
): Promise<() => void> {
  const listener = await openListener(store, onLost);
  try {
    await listener.watch(sessionId, onWake);
  } catch (error) {
    listener.end();
    throw error;
  }
  return listener.end;
}

/** Wakes a session's watchers, for a process that writes once and does not know who they are. */
export async function wakeWatchers({ pool }: Pick<Store, "pool">, sessionId: string): Promise<void> {
  await pool.query("select pg_notify($1, '')", [channelOf(watchKey(sessionId))]);
}

/** A connection only for notifications. `onLost` is not called for a connection that was ended on purpose. */
export async function dedicated(
  store: Store,
  onLost: () => void,
  onCall: (channel: string, payload: string) => void,
): Promise<{ readonly client: pg.PoolClient; readonly end: () => void }> {
  const client = await store.pool.connect();
  let open = true;
  const end = (error?: Error) => {
    if (!open) return;
    open = false;
    // Destroyed, not returned to the pool, so that its locks and channels are released.
    client.release(error ?? true);
  };
  client.on("notification", ({ channel, payload = "" }) => onCall(channel, payload));
  client.on("error", (error) => {
    if (!open) return;
    end(error);
    onLost();
  });
  return { client, end: () => end() };
}
