/** The connection to Postgres: pool and transactions. The rest of `store/` holds one file per aggregate. */
import { drizzle, type NodePgDatabase } from "drizzle-orm/node-postgres";
import type { PgTransactionConfig } from "drizzle-orm/pg-core";
import pg from "pg";
import { isQueryError } from "../contract/errors.ts";
import { StoreAnnouncements } from "./announcements.ts";
import {
  isOfConnection,
  withFreshConnections,
  type FreshConnections,
  endSilentConnections,
  databaseCode,
} from "./connections.ts";
import type { ObjectStore } from "./object-store.ts";
import { readPostgresAddress } from "./postgres-address.ts";
import * as schema from "./schema/index.ts";

export { migrateStore } from "./migrate.ts";

/** Told of each append to a session's log. In a transaction it is passed on once that is committed. */
interface Log {
  readonly appended: (sessionId: string) => void;
}
/** Where large packs are; absent: in Postgres, as all else. */
interface Objects {
  readonly objects?: ObjectStore | undefined;
}
type Queries = NodePgDatabase<typeof schema>;
type Body = Parameters<Queries["transaction"]>[0];
export type Transaction = Parameters<Body>[0] & Log & Objects;
export type Database = Omit<Queries, "transaction"> &
  Log &
  Objects & {
    readonly $client: pg.Pool;
    transaction<T>(body: (tx: Transaction) => Promise<T>, config?: PgTransactionConfig): Promise<T>;
  };
/** Inside `transaction`, or the database itself: what the query functions take. */
export type Queryable = Pick<
  Database,
  | "appended"
  | "objects"
  | "select"
  | "selectDistinct"
  | "$count"
  | "$with"
  | "with"
  | "insert"
  | "update"
  | "delete"
  | "execute"
  | "query"
>;

export interface Store {
  readonly db: Database;
  readonly pool: pg.Pool;
  readonly announcements: StoreAnnouncements;
  /** Sends wake-ups of watchers that are still to be sent. */
  close(): Promise<void>;
}

export interface StoreOptions {
  readonly url: string;
  /** Where large packs are; default: in Postgres. */
  readonly objects?: ObjectStore | undefined;
  /** Default 10. Each activity in flight uses at most one at a time. */
  readonly maxConnections?: number;
  /** How long Postgres may leave a query without an answer, in ms, before the connection is abandoned; default 45 s. */
  readonly silenceMs?: number;
  /** How long a new connection may take, in ms, if the address has no `connect_timeout`; default 5 s. */
  readonly connectTimeoutMs?: number;
  /** What Postgres calls the connections, unless the address names them; default "longhaul". */
  readonly applicationName?: string;
  /** Called with every lost connection; the pool replaces it by itself. */
  readonly onError?: (error: Error) => void;
}

const CONNECT_TIMEOUT_MS = 5_000;
/** Shorter than the quick activities' timeout of one minute, so that they fail with this error; no statement takes long. */
const SILENCE_MS = 45_000;
/**
 * If a worker is stopped in the middle of a transaction, its locks are released after this time. Longer than any activity
 * idles in a transaction, as while a sandbox is created.
 */
const IDLE_IN_TRANSACTION_MS = 600_000;

/**
 * Named prepared statements are planned once per connection. By default the server planned the view of a session again for
 * every step: 0.8 to 1.4 ms of the 4 ms that loading 500 already seen messages took (measured). Other statements are then
 * planned without their values, too: nearly all look up one session, and the same plan fits every session.
 */
const SETTINGS = {
  idle_in_transaction_session_timeout: String(IDLE_IN_TRANSACTION_MS),
  plan_cache_mode: "force_generic_plan",
};
/** What the address, the role or the database sets stays: only what nobody has chosen is replaced. */
const SETTLE = `select set_config(name, value, false) from json_each_text($1) as ours(name, value)
  join pg_settings using (name) where source in ('default', 'configuration file')`;
/** BEGIN and the first statement after it: if the connection fails there, nothing was done, neither there nor by the body. */
const NOTHING_DONE = 2;

/**
 * Not as parameters of the start: some poolers refuse those. The pool waits for it, which its types do not say. A server that
 * refuses it is used as it is.
 */
const settled = (application_name: string, onError: (error: Error) => void) => ({
  onConnect: async (client: pg.ClientBase): Promise<void> => {
    await client.query(SETTLE, [JSON.stringify({ ...SETTINGS, application_name })]).catch(onError);
  },
});

/**
 * Opens a pool. Connects when first used; a database that restarts costs its connections, never the process.
 * @throws PostgresAddressWrong
 */
export function openStore(options: StoreOptions): Store {
  const onError = options.onError ?? (() => undefined);
  const address = readPostgresAddress(options.url);
  const pool = new pg.Pool({
    max: options.maxConnections ?? 10,
    connectionTimeoutMillis: address.connectTimeoutMs ?? options.connectTimeoutMs ?? CONNECT_TIMEOUT_MS,
    idleTimeoutMillis: 30_000,
    ...settled(options.applicationName ?? "longhaul", onError),
    ...address.config,
  });
  // A checked-out client emits its own error when the server goes away; without a listener Node ends the process.
  pool.on("error", onError);
  pool.on("connect", (client) => client.on("error", onError));
  endSilentConnections(pool, options.silenceMs ?? SILENCE_MS);
  const fresh = withFreshConnections(pool);
  const announcements = new StoreAnnouncements({ pool });
  const { objects } = options;
  const db = Object.assign(drizzle(pool, { schema }), { appended: announcements.wake, objects });
  const close = async () => {
    await announcements.stop();
    await pool.end();
  };
  return { db: withOwnTransactions(db, fresh), pool, announcements, close };
}

/** Of a transaction with one snapshot, if a row that it writes was changed since: Postgres undid all of it. */
const CHANGED_SINCE = "40001";
/** Chosen by judgement: a session at work changes its row some times a second, and a snapshot is milliseconds old when it is used. */
const SNAPSHOTS = 5;

/** Begins a transaction with one snapshot again, with a newer one, as Postgres asks for. Others have no such errors. */
async function withNewerSnapshots<T>(run: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await run();
    } catch (error) {
      if (attempt === SNAPSHOTS || databaseCode(error) !== CHANGED_SINCE) throw error;
    }
  }
}

/**
 * If BEGIN fails, as after an unnoticed restart, the library never releases the connection: the pool shrinks by one each
 * time, and can never be closed. Here a transaction always releases its connection, and begins once more if its connection was of no use
 * from the start.
 */
function withOwnTransactions(
  db: Queries & Log & Objects & { readonly $client: pg.Pool },
  fresh: FreshConnections,
): Database {
  const sessions = new WeakMap<pg.PoolClient, OwnSession>();
  const transaction: Database["transaction"] = (body, config) => {
    let counter: StatementCounter | undefined;
    const run = async () => {
      counter = undefined;
      const client = await db.$client.connect();
      const session = sessions.get(client) ?? ownSession(client);
      sessions.set(client, session);
      counter = session.counter;
      counter.statements = 0;
      const appended = new Set<string>();
      const beside: Log & Objects = {
        appended: (sessionId) => void appended.add(sessionId),
        objects: db.objects,
      };
      try {
        const result = await session.db.transaction((tx) => body(Object.assign(tx, beside)), config);
        client.release();
        appended.forEach(db.appended);
        return result;
      } catch (error) {
        client.release(isOfConnection(error));
        throw error;
      }
    };
    // An error of the body's own may come after it has done something.
    const mayRepeat = (error: unknown) =>
      isQueryError(error) && counter !== undefined && counter.statements <= NOTHING_DONE;
    return withNewerSnapshots(() => fresh.onceMore(run, mayRepeat));
  };
  return Object.assign(db, { transaction });
}

/** How many statements were sent, without the one that follows a failure. */
interface StatementCounter {
  statements: number;
}

interface OwnSession {
  readonly db: NodePgDatabase<typeof schema>;
  readonly counter: StatementCounter;
}

function ownSession(client: pg.PoolClient): OwnSession {
  const counter: StatementCounter = { statements: 0 };
  const logQuery = (text: string) => {
    if (text !== "rollback") counter.statements += 1;
  };
  return { db: drizzle(client, { schema, logger: { logQuery } }), counter };
}
