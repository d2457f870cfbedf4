import { randomBytes } from "node:crypto";
import { afterEach, beforeEach, describe, expect, inject, it } from "vitest";
import { migrateStore, openStore, type Store } from "../../activities/store/db.ts";
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

async function withStore<T>(work: (store: Store) => Promise<T>): Promise<T> {
  const store = openStore({ url, maxConnections: 3 });
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

const applied = () =>
  onServer(url, async (client) => {
    const { rows } = await client.query<{ hash: string }>("select hash from longhaul_migrations order by id");
    return rows.map((row) => row.hash);
  });

describe("the tables", () => {
  it("are made once where five workers start at once on an empty database [R22]", async () => {
    await Promise.all(Array.from({ length: 5 }, () => withStore(migrateStore)));
    const hashes = await applied();
    expect(hashes.length).toBeGreaterThan(0);
    expect(new Set(hashes).size).toBe(hashes.length);
    await withStore(async (store) => {
      await createSession(store, { id: "s", task: "t", config: runConfig() });
      expect(await findSession(store.db, "s")).toMatchObject({ id: "s" });
    });
  });

  it("are not changed by half where a migration fails, and whole once its cause is gone [R23]", async () => {
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
