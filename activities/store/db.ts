/** The connection to Postgres: pool, transactions, migrations. The rest of `store/` holds one file per aggregate. */
import { fileURLToPath } from "node:url";
import { drizzle, type NodePgDatabase } from "drizzle-orm/node-postgres";
import { migrate } from "drizzle-orm/node-postgres/migrator";
import pg from "pg";
import { applyClientRights } from "./client-rights.ts";
import { readPostgresAddress } from "./postgres-address.ts";
import * as schema from "./schema/index.ts";
import { allowSilence, endSilentConnections } from "./silence.ts";

export type Database = NodePgDatabase<typeof schema> & { readonly $client: pg.Pool };
/** Inside `transaction`, or the database itself: what the query functions take. */
export type Queryable = Pick<
  Database,
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
  close(): Promise<void>;
}

export interface StoreOptions {
  readonly url: string;
  /** Default 10. Each activity in flight uses at most one at a time. */
  readonly maxConnections?: number;
  /** How long Postgres may leave a query without an answer, in ms, before the connection is abandoned; default 45 s. */
  readonly silenceMs?: number;
  /** How long a new connection may take, in ms, if the address has no `connect_timeout`; default 5 s. */
  readonly connectTimeoutMs?: number;
  /** Called with every lost connection; the pool replaces it by itself. */
  readonly onError?: (error: Error) => void;
}

/** Any number; the same in every version, so that old and new workers exclude each other. */
const MIGRATION_LOCK = 7_305_142;
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
const PLAN_ONCE = "-c plan_cache_mode=force_generic_plan";

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
    idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_MS,
    application_name: "longhaul",
    options: PLAN_ONCE,
    ...address.config,
  });
  // A checked-out client emits its own error when the server goes away; without a listener Node ends the process.
  pool.on("error", onError);
  pool.on("connect", (client) => client.on("error", onError));
  endSilentConnections(pool, options.silenceMs ?? SILENCE_MS);
  return { db: withOwnTransactions(drizzle(pool, { schema })), pool, close: () => pool.end() };
}

/**
 * If BEGIN fails, as after an unnoticed restart, the library never releases the connection: the pool shrinks by one each
 * time, and can never be closed. Here a transaction always releases its connection.
 */
function withOwnTransactions(db: Database): Database {
  const sessions = new WeakMap<pg.PoolClient, NodePgDatabase<typeof schema>>();
  const transaction: Database["transaction"] = async (body, config) => {
    const client = await db.$client.connect();
    try {
      const own = sessions.get(client) ?? drizzle(client, { schema });
      sessions.set(client, own);
      return await own.transaction(body, config);
    } finally {
      client.release();
    }
  };
  return Object.assign(db, { transaction });
}

/**
 * Brings the tables up to date. Several processes may call it at once: an advisory lock on one connection lets them
 * in one after the other (the migrator itself takes no lock). Also grants clients' roles their rights on new tables.
 */
export async function migrateStore(store: Store): Promise<void> {
  const client = await store.pool.connect();
  try {
    // Another process' migration may take long, and this one waits for it.
    allowSilence(client);
    await client.query("select pg_advisory_lock($1)", [MIGRATION_LOCK]);
    try {
      const migrationsFolder = fileURLToPath(new URL("./migrations", import.meta.url));
      await migrate(drizzle(client), {
        migrationsFolder,
        migrationsTable: "longhaul_migrations",
        migrationsSchema: "public",
      });
      await applyClientRights(client);
    } finally {
      await client.query("select pg_advisory_unlock($1)", [MIGRATION_LOCK]);
    }
  } finally {
    client.release();
  }
}
