/** The connection to Postgres: pool, transactions, migrations. The rest of `store/` holds one file per aggregate. */
import { fileURLToPath } from "node:url";
import { drizzle, type NodePgDatabase } from "drizzle-orm/node-postgres";
import { readMigrationFiles, type MigrationMeta } from "drizzle-orm/migrator";
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
const PLAN_ONCE = "set plan_cache_mode = force_generic_plan";
/** Another server took over and this one only reads (25006), or it ends or starts (57P01 to 57P03): no connection to it is of use. */
const USELESS = /^(25006|57P0[1-3])$/;

/**
 * Not as an option of the start: some poolers refuse those, and it only saves time. The pool waits for it, which its types do not
 * say.
 */
const planningOnce = (onError: (error: Error) => void) => ({
  onConnect: async (client: pg.ClientBase): Promise<void> => {
    await client.query(PLAN_ONCE).catch(onError);
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
    idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_MS,
    application_name: "longhaul",
    ...planningOnce(onError),
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
      const result = await own.transaction(body, config);
      client.release();
      return result;
    } catch (error) {
      client.release(isUseless(error));
      throw error;
    }
  };
  return Object.assign(db, { transaction });
}

/** Whether the connection would refuse the next one, too: it is not pooled again. */
function isUseless(error: unknown): boolean {
  for (let inner = error; inner instanceof Error; inner = inner.cause)
    if ("code" in inner && typeof inner.code === "string" && USELESS.test(inner.code)) return true;
  return false;
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
      await applyMigrations(client, readMigrationFiles({ migrationsFolder }));
      await applyClientRights(client);
    } finally {
      await client.query("select pg_advisory_unlock($1)", [MIGRATION_LOCK]);
    }
  } finally {
    client.release();
  }
}

/**
 * As drizzle's own migrator does it, in the table that this uses, but without its CREATE SCHEMA: that needs a right on the database also
 * where the schema exists, which a managed server gives to nobody.
 */
async function applyMigrations(client: pg.PoolClient, migrations: readonly MigrationMeta[]): Promise<void> {
  // Asked first: to create it needs a right on the schema also where it exists.
  const known = await client.query<{ found: string | null }>(
    "select to_regclass('public.longhaul_migrations')::text as found",
  );
  if (known.rows[0]?.found == null)
    await client.query(
      "create table public.longhaul_migrations (id serial primary key, hash text not null, created_at bigint)",
    );
  const { rows } = await client.query<{ at: string | null }>(
    "select max(created_at) as at from public.longhaul_migrations",
  );
  const last = Number(rows[0]?.at ?? -1);
  await client.query("begin");
  try {
    for (const { folderMillis, hash, sql } of migrations.filter((one) => one.folderMillis > last)) {
      for (const statement of sql) await client.query(statement);
      await client.query("insert into public.longhaul_migrations (hash, created_at) values ($1, $2)", [
        hash,
        folderMillis,
      ]);
    }
    await client.query("commit");
  } catch (error) {
    await client.query("rollback").catch(() => undefined);
    throw error;
  }
}
