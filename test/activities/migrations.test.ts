import { randomBytes } from "node:crypto";
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { drizzle } from "drizzle-orm/node-postgres";
import { migrate } from "drizzle-orm/node-postgres/migrator";
import { afterEach, beforeEach, describe, expect, inject, it } from "vitest";
import { migrateStore, openStore, type Store } from "../../activities/store/db.ts";
import { loadView } from "../../activities/store/load-view.ts";
import { createSession, findSession } from "../../activities/store/sessions.ts";
import { runConfig } from "../support/agent-harness.ts";
import { dropDatabase, onServer } from "../support/services.ts";

let name: string;
let url: string;
beforeEach(async () => {
  name = `empty_${randomBytes(6).toString("hex")}`;
  await onServer(inject("databaseServer"), (client) => client.query(`create database ${name}`));
  const address = new URL(inject("databaseServer"));
  address.pathname = `/${name}`;
  url = address.href;
});
afterEach(() => dropDatabase(inject("databaseServer"), name));

async function withStore<T>(use: (store: Store) => Promise<T>): Promise<T> {
  const store = openStore({ url, maxConnections: 3 });
  try {
    return await use(store);
  } finally {
    await store.close();
  }
}

/** The tables as they were after so many migrations. */
async function migrateTo(store: Store, count: number): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "migrations-"));
  try {
    await cp(new URL("../../activities/store/migrations", import.meta.url), folder, { recursive: true });
    const path = join(folder, "meta", "_journal.json");
    const journal = JSON.parse(await readFile(path, "utf8")) as { readonly entries: readonly unknown[] };
    await writeFile(path, JSON.stringify({ ...journal, entries: journal.entries.slice(0, count) }));
    await migrate(drizzle(store.pool), {
      migrationsFolder: folder,
      migrationsTable: "longhaul_migrations",
      migrationsSchema: "public",
    });
  } finally {
    await rm(folder, { recursive: true });
  }
}

const applied = () =>
  onServer(url, async (client) => {
    const { rows } = await client.query<{ hash: string }>("select hash from longhaul_migrations order by id");
    return rows.map((row) => row.hash);
  });

describe("the tables", () => {
  it("are made once if five workers start at once on an empty database [R22]", async () => {
    await Promise.all(Array.from({ length: 5 }, () => withStore(migrateStore)));
    const hashes = await applied();
    expect(hashes.length).toBeGreaterThan(0);
    expect(new Set(hashes).size).toBe(hashes.length);
    await withStore(async (store) => {
      await createSession(store, { id: "s", task: "t", config: runConfig() });
      expect(await findSession(store.db, "s")).toMatchObject({ id: "s" });
    });
  });

  it("are not changed by half if a migration fails, and whole once its cause is gone [R23]", async () => {
    await onServer(url, (client) => client.query("create table boxes (in_the_way int)"));
    await withStore(async (store) => {
      await expect(migrateStore(store)).rejects.toThrow();
      const { rows } = await store.pool.query("select tablename from pg_tables where schemaname = 'public'");
      expect(rows.map((row: { tablename: string }) => row.tablename).toSorted()).not.toContain("sessions");
      await store.pool.query("drop table boxes");
      await migrateStore(store);
    });
    expect((await applied()).length).toBeGreaterThan(0);
  });

  it("keep what rounds had marked row by row: in force, undone and superseded", async () => {
    await withStore(async (store) => {
      await migrateTo(store, 4);
      await store.pool.query(`insert into messages
        (session_id, sequence, position, epoch, step, slot, role, kind, content, token_count, is_compacted, compacted_round, superseded_epoch)
        select 's', sequence, coalesce(place, sequence), 1, sequence, slot, role, kind, '[{"type":"text","text":"Hm."}]', 3, round is not null, round, gone
        from (values
          (1, null::float8, 'user', 'user', 'task', null::int, null::int),
          (2, null, 'assistant', 'assistant', 'answer', 1, null),
          (3, null, 'assistant', 'assistant', 'answer', 1, null),
          (4, null, 'assistant', 'assistant', 'answer', null, null),
          (5, 3.5, 'summary:1', 'assistant', 'summary', null, null),
          (6, 4.5, 'summary:2', 'assistant', 'summary', 2, null),
          (7, null, 'assistant', 'assistant', 'answer', null, 2),
          (8, 7.5, 'summary:3', 'assistant', 'summary', null, 2)
        ) as rows(sequence, place, slot, role, kind, round, gone)`);
      await store.pool.query(`insert into compaction_events
        (session_id, epoch, step, round, trigger, strategy, status, attempts, tokens_before, tokens_after, duration_ms, superseded_epoch)
        select 's', 1, 4, round, 'threshold', 'reactive-overflow', status, '[]', 9, 5, 1, gone
        from (values (1, 'compacted', null::int), (2, 'undone', null), (3, 'compacted', 2), (4, 'failed', null)) as rounds(round, status, gone)`);
      await migrateStore(store);
      const { rows } = await store.pool.query<{ sequence: string; round: number | null; marked: boolean }>(
        `select sequence, compacted_round as round, is_compacted as marked from messages where session_id = 's' order by sequence`,
      );
      const marks = rows.map(({ round, marked }) => (marked ? round : null));
      expect(marks).toEqual([null, 1, 1, null, null, 2, null, null]);
      expect((await loadView(store.db, "s")).map(({ sequence }) => sequence)).toEqual([1, 5, 4]);
    });
  });

  it("may be looked through again and again while a worker writes [R23]", async () => {
    await withStore(async (store) => {
      await migrateStore(store);
      const before = await applied();
      const write = async () => {
        for (let index = 0; index < 20; index += 1)
          await createSession(store, { id: `s${index}`, task: "t", config: runConfig() });
      };
      const start = async () => {
        for (let index = 0; index < 5; index += 1) await withStore(migrateStore);
      };
      await Promise.all([write(), start()]);
      expect(await applied()).toEqual(before);
      expect(await findSession(store.db, "s19")).toMatchObject({ id: "s19" });
    });
  });
});
