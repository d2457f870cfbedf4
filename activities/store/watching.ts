/**
 * Who watches a session. A watcher listens on a channel of that session, holds a shared lock by its id for as long as its
 * connection lives, and announces itself to the workers once: so a writer knows without asking, and a watcher that
 * died holds nothing any more.
 */
import { createHash } from "node:crypto";
import type pg from "pg";
import type { Store } from "./db.ts";

/** Advisory locks of watchers, among all of the database. Any number, the same in every version. */
export const WATCH_CLASS = 7_305_145;
/** The channel on which workers learn of new watches: the session's key. */
export const WATCHED_CHANNEL = "longhaul_watched";

/** A session among the locks and channels of its database. Two that share one, once in some 100,000 sessions, wake each other's watchers. */
export function watchKey(sessionId: string): number {
  return createHash("md5").update(sessionId).digest().readInt32BE(0);
}

export function channelOf(key: number): string {
  return `longhaul_session_${key >>> 0}`;
}

/** One connection that listens for any number of sessions. */
export interface Listener {
  /** Calls `onWake` when the session has something new. Resolves once that is so. */
  watch(sessionId: string, onWake: () => void): Promise<void>;
  unwatch(sessionId: string): void;
  /** Gives its connection back. */
  readonly end: () => void;
}

/** @param onLost is called when the connection goes away: open another then. Polling stays the fallback */
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

/** Calls `onWake` when the session has something new, on a connection of its own, until what it resolves with is called. */
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

/** A connection for notifications alone. `onLost` is not called for one that was ended. */
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
    // Destroyed, not given back: its locks and channels go with it.
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
