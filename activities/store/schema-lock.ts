/** Who changes tables, rights or roles does it alone: Postgres refuses two at once ("tuple concurrently updated"). */
import type pg from "pg";
import { allowSilence } from "./connections.ts";

/** Any number; the same in every version, so that old and new workers exclude each other. */
const SCHEMA_LOCK = 7_305_142;

/**
 * Runs the body on a connection of its own while no other process changes the same database.
 * @throws what the body throws; the connection is closed then, which frees the lock and undoes what was not committed
 */
export async function changingSchema<T>(
  { pool }: { readonly pool: pg.Pool },
  body: (client: pg.PoolClient) => Promise<T>,
): Promise<T> {
  const client = await pool.connect();
  let isDone = false;
  try {
    // What another process changes may take long, and this one waits for it.
    allowSilence(client);
    await client.query("select pg_advisory_lock($1)", [SCHEMA_LOCK]);
    const result = await body(client);
    await client.query("select pg_advisory_unlock($1)", [SCHEMA_LOCK]);
    isDone = true;
    return result;
  } finally {
    client.release(!isDone);
  }
}
