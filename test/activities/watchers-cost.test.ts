/** What each pass of a watcher asks of Postgres, in a session with very many events: rows that are read, not time. */
import { randomUUID } from "node:crypto";
import { sql, type SQL } from "drizzle-orm";
import { expect, it } from "vitest";
import type { Database } from "../../activities/store/db.ts";
import { readEvents, restoredTo } from "../../activities/store/events.ts";
import { createSession } from "../../activities/store/sessions.ts";
import { runConfig } from "../support/agent-harness.ts";
import { useDatabase } from "../support/test-database.ts";

const EVENTS = 100_000;
const database = useDatabase(2);

interface Plan {
  readonly "Node Type": string;
  readonly "Actual Rows": number;
  readonly "Actual Loops": number;
  readonly "Rows Removed by Filter"?: number;
  readonly Plans?: readonly Plan[];
}

/** How many rows a plan's scans touched. */
const rowsRead = (plan: Plan): number =>
  (plan["Node Type"].includes("Scan")
    ? (plan["Actual Rows"] + (plan["Rows Removed by Filter"] ?? 0)) * plan["Actual Loops"]
    : 0) + (plan.Plans ?? []).reduce((sum, below) => sum + rowsRead(below), 0);

/** Explains each statement before it is run. */
function explained(db: Database) {
  const seen = { rows: 0 };
  const execute = async (query: SQL) => {
    const { rows } = await db.execute<{
      "QUERY PLAN": readonly { readonly Plan: Plan }[];
    }>(sql`explain (analyze, format json) ${query}`);
    const [found] = rows[0]?.["QUERY PLAN"] ?? [];
    seen.rows += found === undefined ? 0 : rowsRead(found.Plan);
    return db.execute(query);
  };
  const wrapped = new Proxy(db, {
    get: (target, name, receiver) => (name === "execute" ? execute : Reflect.get(target, name, receiver)),
  });
  return { db: wrapped, seen };
}

it("is a look-up of a few rows, wherever the watcher is and also in a restored copy", async () => {
  const { db } = database.store;
  const id = randomUUID();
  await createSession(database.store, { id, task: "Save it.", config: runConfig() });
  await db.execute(sql`delete from events where session_id = ${id}`);
  await db.execute(sql`update cursors set event_seq = ${EVENTS} where session_id = ${id}`);
  await db.execute(sql`insert into events (session_id, seq, epoch, step, attempt, type, data, at)
    select ${id}, n, 1, 1, 1, 'step:started', '{}', now() - ${EVENTS} * interval '1 s' + n * interval '1 s'
    from generate_series(1, ${EVENTS}) n`);
  await db.execute(sql`analyze events`);
  for (const seq of [1, 50_000, EVENTS]) {
    const [last] = await readEvents(db, id, seq - 1, 1);
    const quiet = explained(db);
    expect(await restoredTo(quiet.db, id, { seq, last })).toBeUndefined();
    expect(quiet.seen.rows).toBeLessThan(10);
    // What it saw is not there: another event has its number, or none.
    for (const [at, place] of [
      [new Date(Date.parse(last?.at ?? "") - 500).toISOString(), Math.max(0, seq - 1)],
      [new Date(0).toISOString(), 0],
    ] as const) {
      const restored = explained(db);
      expect(await restoredTo(restored.db, id, { seq, last: { seq, at } })).toBe(place);
      // To a copy from long before, it looks back, once: then it has another place.
      if (place > 0) expect(restored.seen.rows).toBeLessThan(10);
    }
    const behind = explained(db);
    expect(
      await restoredTo(behind.db, id, {
        seq: EVENTS + seq,
        last: { seq: EVENTS + seq, at: new Date().toISOString() },
      }),
    ).toBe(EVENTS);
    expect(behind.seen.rows).toBeLessThan(10);
    const fresh = explained(db);
    expect(await restoredTo(fresh.db, id, { seq, last: undefined })).toBeUndefined();
    expect(fresh.seen.rows).toBeLessThan(10);
  }
});
