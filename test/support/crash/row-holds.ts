/**
 * Holds one of the product's writes at its commit, from outside: a deferred trigger in the test's database waits for an
 * advisory lock of the test. The worker that waits for the commit is killed meanwhile; then the write is committed
 * although its caller is gone, or it is discarded with its connection.
 */
import pg from "pg";
import type { TestDatabase } from "../test-database.ts";

const TABLES = [
  "runs",
  "stored_messages",
  "tool_calls",
  "compaction_events",
  "checkpoints",
  "events",
  "waits",
  "questions",
  "verifications",
  "publications",
  "budget_allowances",
  "budget_reservations",
  "model_calls",
  "sandboxes",
  "follow_rounds",
] as const;

export interface RowHoldSpec {
  readonly table: (typeof TABLES)[number];
  /** Columns of the row after the write; an update matches when it gives them these values. */
  readonly match: Readonly<Record<string, unknown>>;
}

interface RowHold {
  /** True while a write waits. */
  reached(): Promise<boolean>;
  /** Releases: `kept` commits the waiting write, `lost` ends its connection first. Call it once. */
  release(fate: "kept" | "lost"): Promise<void>;
}

export interface RowHolds {
  hold(sessionId: string, spec: RowHoldSpec): Promise<RowHold>;
  close(): Promise<void>;
}

/** Class of our advisory locks. */
const LOCK_CLASS = 47_110_001;
const INSTALL = `
create table row_holds (id serial primary key, session_id text not null, table_name text not null, match jsonb not null);
create function hold_row() returns trigger language plpgsql as $$
declare
  place int;
begin
  for place in
    select id from row_holds where session_id = new.session_id and table_name = tg_table_name
      and to_jsonb(new) @> match and (tg_op = 'INSERT' or not to_jsonb(old) @> match)
  loop
    perform pg_advisory_xact_lock_shared(${LOCK_CLASS}, place);
  end loop;
  return null;
end $$;
${TABLES.map(
  (table) => `create constraint trigger hold_row after insert or update on ${table}
  deferrable initially deferred for each row execute function hold_row();`,
).join("\n")}`;

/** Prepares a test's database. Its triggers are dropped with it. */
export async function createRowHolds({ url }: Pick<TestDatabase, "url">): Promise<RowHolds> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(INSTALL);
  // The server shows the locks of all databases, and another file's holds have the same numbers.
  const waiting = async (lockId: number): Promise<number[]> => {
    const { rows } = await client.query<{ pid: number }>(
      `select l.pid from pg_locks l join pg_database d on d.oid = l.database and d.datname = current_database()
       where l.locktype = 'advisory' and l.classid = $1 and l.objid = $2 and not l.granted`,
      [LOCK_CLASS, lockId],
    );
    return rows.map((row) => row.pid);
  };
  return {
    async hold(sessionId, { table, match }) {
      const { rows } = await client.query<{ id: number }>(
        "insert into row_holds (session_id, table_name, match) values ($1, $2, $3) returning id",
        [sessionId, table, JSON.stringify(match)],
      );
      const lockId = rows[0]?.id ?? 0;
      await client.query("select pg_advisory_lock($1, $2)", [LOCK_CLASS, lockId]);
      return {
        reached: async () => (await waiting(lockId)).length > 0,
        async release(fate) {
          if (fate === "lost") {
            for (const pid of await waiting(lockId))
              await client.query("select pg_terminate_backend($1)", [pid]);
          }
          await client.query("select pg_advisory_unlock($1, $2)", [LOCK_CLASS, lockId]);
        },
      };
    },
    close: () => client.end(),
  };
}
