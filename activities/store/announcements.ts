/** Announcements to a worker from other processes through Postgres: a session is watched, or its work must stop. */
import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import type { Store } from "./db.ts";
import { channelOf, dedicated, WATCH_CLASS, WATCHED_CHANNEL, watchKey } from "./watching.ts";

/** The id of a session whose activities must stop. */
const STOP_CHANNEL = "longhaul_stops";
const RECONNECT_MS = 500;

export interface Announcements {
  /** Whether the session may be watched: true also while that is unknown. */
  readonly isWatched: (sessionId: string) => boolean;
  /** Wakes the watchers of these sessions, and forgets the sessions that are no longer watched. */
  wake(sessionIds: readonly string[]): Promise<void>;
  /** Calls back when a watch of the session begins. @returns a function that ends the subscription */
  readonly onWatched: (sessionId: string, begun: () => void) => () => void;
  /** Tells all workers that activities of the session must stop, this one first. Never fails. */
  readonly stop: (sessionId: string) => void;
  /** Calls back on a stop. @returns a function that ends the subscription */
  onStop(sessionId: string, stopped: () => void): () => void;
  close(): void;
}

/** Listens on a connection of its own, and on another one if that is lost. */
export function hearAnnouncements(store: Store): Announcements {
  /** Keys of watched sessions, with the number of the announcement; undefined while not connected. */
  let watched: Map<number, number> | undefined;
  let announced = 0;
  const begins = new Callbacks<number>();
  const stops = new Callbacks<string>();
  let closed = false;
  let end: (() => void) | undefined;

  const open = async (): Promise<void> => {
    const known = new Map<number, number>();
    const connection = await dedicated(store, onLost, (channel, payload) => {
      if (channel === STOP_CHANNEL) return stops.call(payload);
      const key = Number(payload);
      known.set(key, ++announced);
      begins.call(key);
    });
    try {
      await connection.client.query(`listen ${WATCHED_CHANNEL}`);
      await connection.client.query(`listen ${STOP_CHANNEL}`);
      for (const key of await watchedKeys(connection.client)) known.set(key, ++announced);
      // Not before: until all are known, any session may be watched.
      watched = known;
    } catch (error) {
      watched = undefined;
      connection.end();
      throw error;
    }
    if (closed) connection.end();
    else end = connection.end;
  };
  const reopen = async () => {
    while (!closed) {
      try {
        return await open();
      } catch {
        await sleep(RECONNECT_MS, undefined, { ref: false });
      }
    }
  };
  const onLost = () => {
    watched = undefined;
    end = undefined;
    void reopen();
  };
  void reopen();

  return {
    isWatched: (sessionId) => watched?.has(watchKey(sessionId)) ?? true,
    async wake(sessionIds) {
      const asOf = announced;
      const keys = [...new Set(sessionIds.map(watchKey))];
      const { rows } = await store.pool.query<{ key: number }>(WAKE, [
        keys,
        keys.map(channelOf),
        WATCH_CLASS,
      ]);
      const heard = new Set(rows.map(({ key }) => key));
      for (const key of keys)
        if (!heard.has(key) && (watched?.get(key) ?? Infinity) <= asOf) watched?.delete(key);
    },
    onWatched: (sessionId, begun) => begins.add(watchKey(sessionId), begun),
    stop(sessionId) {
      stops.call(sessionId);
      store.pool.query("select pg_notify($1, $2)", [STOP_CHANNEL, sessionId]).catch(() => undefined);
    },
    onStop: (sessionId, stopped) => stops.add(sessionId, stopped),
    close() {
      closed = true;
      end?.();
    },
  };
}

/** A session whose lock is free has no watcher: nothing is sent then, and the lock is released at once. */
const WAKE = `select w.key, pg_notify(w.channel, '') from unnest($1::int[], $2::text[]) as w(key, channel)
  where not pg_try_advisory_xact_lock($3, w.key)`;

async function watchedKeys(client: pg.PoolClient): Promise<number[]> {
  const { rows } = await client.query<{ key: string }>(
    `select distinct objid::bigint as key from pg_locks where locktype = 'advisory' and objsubid = 2 and classid = $1
      and database = (select oid from pg_database where datname = current_database())`,
    [WATCH_CLASS],
  );
  // Locks are numbered without a sign.
  return rows.map(({ key }) => Number(key) | 0);
}

/** Subscribers by key. */
class Callbacks<Key> {
  readonly #all = new Map<Key, Set<() => void>>();

  add(key: Key, callback: () => void): () => void {
    const own = () => callback();
    const set = this.#all.get(key) ?? new Set();
    this.#all.set(key, set.add(own));
    return () => {
      set.delete(own);
      if (set.size === 0 && this.#all.get(key) === set) this.#all.delete(key);
    };
  }

  call(key: Key): void {
    for (const callback of this.#all.get(key) ?? []) callback();
  }
}
