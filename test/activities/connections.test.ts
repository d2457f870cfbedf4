/** Connections of the pool that meet trouble, on a real Postgres. */
import { sql } from "drizzle-orm";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it, onTestFinished } from "vitest";
import { databaseErrorOf } from "../../activities/store/database-error.ts";
import { openStore } from "../../activities/store/db.ts";
import { useDatabase } from "../support/test-database.ts";

const SILENCE_MS = 400;

const database = useDatabase();

function patientStore() {
  const store = openStore({ url: database.url, maxConnections: 1, silenceMs: SILENCE_MS });
  onTestFinished(() => store.close());
  return store;
}

it(
  "a question without an answer is given up with its connection, as an error that may pass",
  { tags: ["R17"] },
  async () => {
    const { db, pool } = patientStore();
    const failure: unknown = await db
      .transaction((tx) => tx.execute(sql`select pg_sleep(30)`))
      .catch((error: unknown) => error);
    expect(databaseErrorOf(failure)).toMatchObject({ final: false });
    expect(pool.totalCount).toBe(0);
    expect((await db.execute(sql`select 1 as one`)).rows).toEqual([{ one: 1 }]);
  },
);

it("names the silence if a single query meets it", { tags: ["R17"] }, async () => {
  const { pool } = patientStore();
  await expect(pool.query("select pg_sleep(30)")).rejects.toThrow("no answer in 400 ms");
});

it("a transaction that cannot begin gives its connection back", { tags: ["R16"] }, async () => {
  const { db, pool } = patientStore();
  for (let tries = 0; tries < 3; tries += 1)
    await expect(
      db.transaction((tx) => tx.execute(sql`select 1`), { isolationLevel: "nonsense" as never }),
    ).rejects.toThrow();
  expect((await db.transaction((tx) => tx.execute(sql`select 1 as one`))).rows).toEqual([{ one: 1 }]);
  expect(pool.totalCount - pool.idleCount).toBe(0);
});

it("a transaction that rests for longer, or an answer that comes in pieces, is left alone", async () => {
  const { db } = patientStore();
  const answer = await db.transaction(async (tx) => {
    await tx.execute(sql`select 1`);
    // What it is about: a sandbox is made meanwhile.
    await sleep(3 * SILENCE_MS);
    return tx.execute(sql`select repeat('x', 100000) as text, pg_sleep(0.15) from generate_series(1, 10)`);
  });
  expect(answer.rows).toHaveLength(10);
});

it.each([
  ["a row was changed since its snapshot", 1],
  ["a row is changed each time", Infinity],
] as const)("a transaction with one snapshot begins again if %s", async (_when, changes) => {
  const store = openStore({ url: database.url, maxConnections: 2 });
  onTestFinished(() => store.close());
  const { db } = store;
  await db.execute(sql`create table counted as select 0 as n`);
  onTestFinished(async () => void (await db.execute(sql`drop table counted`)));
  let attempts = 0;
  const adding = db.transaction(
    async (tx) => {
      await tx.execute(sql`select n from counted`);
      attempts += 1;
      if (attempts <= changes) await db.execute(sql`update counted set n = n + 10`);
      await tx.execute(sql`update counted set n = n + 1`);
    },
    { isolationLevel: "repeatable read" },
  );
  if (changes === 1) await adding;
  else await expect(adding).rejects.toMatchObject({ cause: { code: "40001" } });
  expect(attempts).toBe(changes === 1 ? 2 : 5);
  const counts = await db.execute(sql`select n from counted`);
  expect(counts.rows).toEqual([{ n: changes === 1 ? 11 : 50 }]);
});
