/** A session's rows as they were at some moment, put back later: what a restore of an older backup does to it. */
import type { Store } from "../../activities/store/db.ts";

export interface OlderCopy {
  /** Puts the rows of that moment in the place of today's. */
  restore(): Promise<void>;
}

let copies = 0;
/** Of rows that outlive their session: its id, hashed. */
const HASHED = "of_session";

/** Copies all rows of a session and its delegates in one snapshot. */
export async function copyRows({ pool }: Pick<Store, "pool">, id: string): Promise<OlderCopy> {
  const { rows } = await pool.query<{ name: string; key: string }>(`
    select table_name as name, case table_name when 'sessions' then 'id' else 'session_id' end as key
    from information_schema.columns join information_schema.tables using (table_schema, table_name)
    where table_schema = 'public' and table_type = 'BASE TABLE'
    and column_name = case table_name when 'sessions' then 'id' else 'session_id' end`);
  const schema = `copy_${(copies += 1)}`;
  const ours = (key: string) =>
    key === HASHED ? `${key} in (select md5(id) from public.sessions where ${isOurs("id")})` : isOurs(key);
  const isOurs = (key: string) => `(${key} = '${id}' or ${key} like '${id}.%')`;
  rows.push({ name: "spending", key: HASHED });
  await inTransaction(pool, "begin isolation level repeatable read", [
    `create schema ${schema}`,
    ...rows.map(
      ({ name, key }) => `create table ${schema}.${name} as select * from public.${name} where ${ours(key)}`,
    ),
  ]);
  return {
    restore: () =>
      inTransaction(pool, "begin", [
        // Without foreign keys and triggers, as pg_restore does it.
        `lock table ${rows.map(({ name }) => `public.${name}`).join(", ")} in access exclusive mode`,
        "set local session_replication_role = replica",
        ...rows.toReversed().map(({ name, key }) => `delete from public.${name} where ${ours(key)}`),
        ...rows.map(({ name }) => `insert into public.${name} select * from ${schema}.${name}`),
      ]),
  };
}

async function inTransaction(
  pool: Store["pool"],
  begin: string,
  statements: readonly string[],
): Promise<void> {
  // Locking all tables may meet a writer that does the same in another order.
  for (let tries = 5; tries > 1; tries -= 1) {
    try {
      return await once(pool, begin, statements);
    } catch (error) {
      if ((error as { code?: string }).code !== "40P01") throw error;
    }
  }
  return once(pool, begin, statements);
}

async function once(pool: Store["pool"], begin: string, statements: readonly string[]): Promise<void> {
  const client = await pool.connect();
  try {
    await client.query(begin);
    for (const statement of statements) await client.query(statement);
    await client.query("commit");
  } catch (error) {
    await client.query("rollback");
    throw error;
  } finally {
    client.release();
  }
}
