/**
 * Announcements to a worker from other processes through Postgres: a session is watched, or its work must stop. A watcher listens on
 * the session's channel, holds a shared lock by the session's key for as long as its connection lives, and announces itself to the
 * workers once: so a writer knows its watchers without asking, and the lock of a watcher that died is released.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import { createHash } from "node:crypto";
import type { Service } from "../process/service.ts";

/** The class of watchers' advisory locks in the database. Any number, the same in every version. */
const WATCH_CLASS = 7_305_145;
/** The channel on which workers learn of new watches: the session's key. */
const WATCHED_CHANNEL = "longhaul_watched";

/**
 * Wake-ups are collected for this long: NOTIFY takes a lock on the whole database at commit, and inside the writing
 * transaction it slowed a comparable system from 55,000 to 3,000 writes a second.
 */
const NOTIFY_GATHER_MS = 40;

/** What a connection is taken from. */
interface Source {
  readonly pool: pg.Pool;
}

/** A session's number for locks and channels. Two sessions that share one, about once in 100,000, wake each other's watchers. */
function watchKey(sessionId: string): number {
  return createHash("md5").update(sessionId).digest().readInt32BE(0);
}

function channelOf(key: number): string {
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
export async function openListener(store: Source, onLost: () => void): Promise<Listener> {
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
  store: Source,
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

/** A connection only for notifications. `onLost` is not called for a connection that was ended on purpose. */
async function dedicated(
  { pool }: Source,
  onLost: () => void,
  onCall: (channel: string, payload: string) => void,
): Promise<{ readonly client: pg.PoolClient; readonly end: () => void }> {
  const client = await pool.connect();
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

/** The id of a session whose activities must stop. */
const STOP_CHANNEL = "longhaul_stops";
const RECONNECT_MS = 500;

export interface Announcements {
  /** Whether the session may be watched: true also while that is unknown. */
  readonly isWatched: (sessionId: string) => boolean;
  /** Calls back when a watch of the session begins. @returns a function that ends the subscription */
  readonly onWatched: (sessionId: string, callback: () => void) => () => void;
  /** Announces to all workers that activities of the session must stop, to this one first. Never fails. */
  readonly announceStop: (sessionId: string) => void;
  /** Calls back on a stop. @returns a function that ends the subscription */
  onStop(sessionId: string, stopped: () => void): () => void;
  /** Sessions of which this process runs an activity now: those with a subscription to stops. */
  sessionsAtWork(): readonly string[];
}

/**
 * Announcements by a store. From `start` on it also hears those of others, on a separate connection, and on a new one if that is
 * lost: a process that never starts it wakes watchers without knowing whether there are any.
 */
export class StoreAnnouncements implements Announcements, Service {
  readonly #store: Source;
  readonly #begins = new Callbacks<number>();
  readonly #stops = new Callbacks<string>();
  /** Keys of watched sessions, with the number of the announcement; undefined while not connected. */
  #watched: Map<number, number> | undefined;
  #announced = 0;
  #isClosed = false;
  #end: (() => void) | undefined;
  /** Sessions whose watchers are woken together. */
  readonly #waiting = new Set<string>();
  #gathering: NodeJS.Timeout | undefined;
  #waking: Promise<void> = Promise.resolve();

  constructor(store: Source) {
    this.#store = store;
  }

  /** Does not wait for the connection: until it is there, any session may be watched. */
  async start(): Promise<void> {
    void this.#reconnect();
  }

  /** Sends the wake-ups that were gathered, and nothing after them. */
  async stop(): Promise<void> {
    this.#isClosed = true;
    this.#end?.();
    await this.flush();
  }

  /** Called for each piece of an answer, so it must be cheap: the key is a hash, and usually no session is watched. */
  readonly isWatched = (sessionId: string): boolean => {
    if (this.#watched === undefined) return true;
    return this.#watched.size > 0 && this.#watched.has(watchKey(sessionId));
  };

  /** Wakes a session's watchers, for the log alone: after a short delay, once for many calls, and never fails. */
  readonly wake = (sessionId: string): void => {
    if (this.#isClosed || !this.isWatched(sessionId)) return;
    this.#waiting.add(sessionId);
    this.#gathering ??= setTimeout(() => void this.flush(), NOTIFY_GATHER_MS);
  };

  /** Sends at once what was gathered, and forgets the sessions that are no longer watched. */
  flush(): Promise<void> {
    clearTimeout(this.#gathering);
    this.#gathering = undefined;
    const keys = [...new Set([...this.#waiting].map(watchKey))];
    this.#waiting.clear();
    // After a lost wake-up a watcher polls anyway, so the writer ignores an error.
    if (keys.length > 0)
      this.#waking = Promise.allSettled([this.#waking, this.#wakeAll(keys)]).then(() => undefined);
    return this.#waking;
  }

  async #wakeAll(keys: readonly number[]): Promise<void> {
    const asOf = this.#announced;
    const values = [keys, keys.map(channelOf), WATCH_CLASS];
    const { rows } = await this.#store.pool.query<{ key: number }>(WAKE, values);
    const listed = new Set(rows.map(({ key }) => key));
    for (const key of keys)
      if (!listed.has(key) && (this.#watched?.get(key) ?? Infinity) <= asOf) this.#watched?.delete(key);
  }

  readonly onWatched = (sessionId: string, callback: () => void): (() => void) =>
    this.#begins.add(watchKey(sessionId), callback);

  readonly announceStop = (sessionId: string): void => {
    this.#stops.call(sessionId);
    this.#store.pool.query("select pg_notify($1, $2)", [STOP_CHANNEL, sessionId]).catch(() => undefined);
  };

  onStop(sessionId: string, stopped: () => void): () => void {
    return this.#stops.add(sessionId, stopped);
  }

  sessionsAtWork(): readonly string[] {
    return this.#stops.keys();
  }

  async #connect(): Promise<void> {
    const watched = new Map<number, number>();
    const begin = (key: number) => watched.set(key, ++this.#announced);
    const onLost = () => {
      this.#watched = undefined;
      this.#end = undefined;
      void this.#reconnect();
    };
    const { client, end } = await dedicated(this.#store, onLost, (channel, payload) => {
      if (channel === STOP_CHANNEL) return this.#stops.call(payload);
      begin(Number(payload));
      this.#begins.call(Number(payload));
    });
    try {
      await client.query(`listen ${WATCHED_CHANNEL}`);
      await client.query(`listen ${STOP_CHANNEL}`);
      for (const key of await watchedKeys(client)) begin(key);
      // Set only now: until all keys are known, any session may be watched.
      this.#watched = watched;
    } catch (error) {
      this.#watched = undefined;
      end();
      throw error;
    }
    if (this.#isClosed) end();
    else this.#end = end;
  }

  async #reconnect(): Promise<void> {
    while (!this.#isClosed) {
      try {
        return await this.#connect();
      } catch {
        await sleep(RECONNECT_MS, undefined, { ref: false });
      }
    }
  }
}

/** A session whose lock is free has no watcher: nothing is sent, and the lock is released at once. */
const WAKE = `select w.key, pg_notify(w.channel, '') from unnest($1::int[], $2::text[]) as w(key, channel)
  where not pg_try_advisory_xact_lock($3, w.key)`;

async function watchedKeys(client: pg.PoolClient): Promise<number[]> {
  const { rows } = await client.query<{ key: string }>(
    `select distinct objid::bigint as key from pg_locks where locktype = 'advisory' and objsubid = 2 and classid = $1
      and database = (select oid from pg_database where datname = current_database())`,
    [WATCH_CLASS],
  );
  // Lock ids are unsigned.
  return rows.map(({ key }) => Number(key) | 0);
}

/** Subscribers by key. */
class Callbacks<Key> {
  readonly #all = new Map<Key, Set<() => void>>();

  add(key: Key, callback: () => void): () => void {
    const listener = () => callback();
    const set = this.#all.get(key) ?? new Set();
    this.#all.set(key, set.add(listener));
    return () => {
      set.delete(listener);
      if (set.size === 0 && this.#all.get(key) === set) this.#all.delete(key);
    };
  }

  keys(): readonly Key[] {
    return [...this.#all.keys()];
  }

  call(key: Key): void {
    for (const callback of this.#all.get(key) ?? []) callback();
  }
}
