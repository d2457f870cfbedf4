/** A round of the operator's retention, with a real Temporal. */
import { like, sql } from "drizzle-orm";
import { pino } from "pino";
import { expect, it } from "vitest";
import { findDeleted } from "../../activities/store/delete-session.ts";
import { sessions } from "../../activities/store/schema/index.ts";
import { aloneOverWorkers } from "../../activities/store/retention.ts";
import { createSession, findSession } from "../../activities/store/sessions.ts";
import { createRetention } from "../../worker/retention.ts";
import { runConfig } from "../support/agent-harness.ts";
import { playConnections } from "../support/play-loop.ts";
import { useDatabase } from "../support/test-database.ts";

const database = useDatabase(4);

/** More sessions than one round deletes. */
const MANY = 60;
const task = { task: "Look.", config: runConfig() };

/** Sessions that ended long ago, one of which can be deleted: the youngest. */
async function endedSessions(name: string, add: (id: string) => Promise<unknown>): Promise<string> {
  for (let place = 0; place < MANY; place += 1) await add(`${name}-${place}`);
  const free = `free-${name}`;
  await createSession(database.store, { id: free, ...task });
  const { db } = database.store;
  const ended = sql`now() - interval '10 days'`;
  await db
    .update(sessions)
    .set({ endedAt: ended })
    .where(sql`ended_at is null and id like ${`${name}%`} and parent_id is null`);
  await db
    .update(sessions)
    .set({ endedAt: sql`${ended} + interval '1 hour'` })
    .where(like(sessions.id, free));
  return free;
}

const retain = createRetention({ sessionsDays: 5 });

async function round(): Promise<void> {
  const { client } = await playConnections();
  await retain({ store: database.store, client, taskQueue: "unserved", logger: pino({ level: "silent" }) });
}

it("sessions with a delegate that never ended do not keep the others", async () => {
  const { store } = database;
  const free = await endedSessions("stuck", async (id) => {
    await createSession(store, { id, ...task });
    const parent = { id, call: "s1c0", epoch: 1, access: "write" as const };
    await createSession(store, { id: `${id}.s1c0`, ...task, parent });
  });
  await round();
  expect(await findDeleted(store.db, free)).toMatchObject({ deletedBy: "retention" });
  expect(await findSession(store.db, "stuck-0")).toBeDefined();
});

it("sessions whose deletion fails do not keep the others", async () => {
  const { store } = database;
  await store.pool.query(`
    create function refuse() returns trigger language plpgsql as $$ begin raise exception 'refused'; end $$;
    create trigger refuse before delete on sessions for each row when (old.id like 'odd-%')
      execute function refuse()`);
  const free = await endedSessions("odd", (id) => createSession(store, { id, ...task }));
  await round();
  await round();
  await store.pool.query("drop function refuse cascade");
  expect(await findDeleted(store.db, free)).toMatchObject({ deletedBy: "retention" });
  expect(await findSession(store.db, "odd-0")).toBeDefined();
});

it("the lock of a round is no transaction that idles", async () => {
  const { db } = database.store;
  let idle: unknown[] = ["not looked"];
  await aloneOverWorkers(db, async () => {
    const { rows } = await db.execute(
      sql`select query from pg_stat_activity where datname = current_database() and state = 'idle in transaction'`,
    );
    idle = rows;
  });
  expect(idle).toEqual([]);
});
