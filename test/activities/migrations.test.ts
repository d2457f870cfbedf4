import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { afterEach, beforeEach, describe, expect, inject, it } from "vitest";
import { migrateStore, openStore, type Store } from "../../activities/store/db.ts";
import { createSession, findSession } from "../../activities/store/sessions.ts";
import { openServices } from "../../client/connect/connection.ts";
import { findServices } from "../../client/setup/services.ts";
import { mayNotMigrate, probeTables } from "../../temporal/postgres-probe.ts";
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

/** As the builds before the first release left it: their migrations, hashes and times, all tables, one under its name of then, and rows. */
async function ofEarlierBuild(): Promise<void> {
  const lines = await readFile(new URL("../fixtures/migrations-before-0.1.0.txt", import.meta.url), "utf8");
  const entries = lines
    .trim()
    .split("\n")
    .map((line) => line.split(" "));
  await withStore(async (store) => {
    await migrateStore(store);
    await createSession(store, { id: "s", task: "t", config: runConfig() });
  });
  await onServer(url, async (client) => {
    await client.query("delete from longhaul_migrations");
    for (const entry of entries)
      await client.query("insert into longhaul_migrations (hash, created_at) values ($1, $2)", entry);
    await client.query("alter table sandboxes rename to boxes");
  });
}

/** Every table with its rows. */
const content = () =>
  onServer(url, async (client) => {
    const { rows } = await client.query<{ xml: string }>(
      "select schema_to_xml('public', true, false, '')::text as xml",
    );
    return rows[0]?.xml;
  });

const applied = () =>
  onServer(url, async (client) => {
    const { rows } = await client.query<{ hash: string }>("select hash from longhaul_migrations order by id");
    return rows.map((row) => row.hash);
  });

describe("the tables", () => {
  it("are made once if five workers start at once on an empty database", { tags: ["R22"] }, async () => {
    await Promise.all(Array.from({ length: 5 }, () => withStore(migrateStore)));
    const hashes = await applied();
    expect(hashes.length).toBeGreaterThan(0);
    expect(new Set(hashes).size).toBe(hashes.length);
    await withStore(async (store) => {
      await createSession(store, { id: "s", task: "t", config: runConfig() });
      expect(await findSession(store.db, "s")).toMatchObject({ id: "s" });
    });
  });

  it(
    "are not changed by half if a migration fails, and whole once its cause is gone",
    { tags: ["R23"] },
    async () => {
      await onServer(url, (client) => client.query("create table sandboxes (in_the_way int)"));
      await withStore(async (store) => {
        await expect(migrateStore(store)).rejects.toThrow();
        const { rows } = await store.pool.query(
          "select tablename from pg_tables where schemaname = 'public'",
        );
        expect(rows.map((row: { tablename: string }) => row.tablename).toSorted()).not.toContain("sessions");
        await store.pool.query("drop table sandboxes");
        await migrateStore(store);
      });
      expect((await applied()).length).toBeGreaterThan(0);
    },
  );

  it("of an earlier build are refused in one line by worker, client and doctor, and stay", async () => {
    await ofEarlierBuild();
    const before = await content();
    const told = async (doing: Promise<unknown>) =>
      doing.then(
        () => "nothing",
        (error: unknown) => (mayNotMigrate(error, url) ?? (error as Error)).message,
      );
    const services = { ...findServices(), databaseUrl: url };
    const all = await Promise.all([
      told(withStore(migrateStore)),
      told(openServices(services)),
      told(probeTables(url)),
    ]);
    const [line] = all;
    expect(line.replace(/ at \S+,/, " at HERE,")).toBe(
      "Postgres has tables of a build before 0.1.0 at HERE, which this one cannot read; nothing in them was changed. Export what you need with the checkout that made them (`npm run longhaul -- export ID`) and end it with `npm run longhaul -- down`; then set them aside: rename the folder .longhaul, or name an empty database in DATABASE_URL.",
    );
    expect(new Set(all.map((one) => one.replace(/ at \S+,/, ""))).size).toBe(1);
    expect(await content()).toBe(before);
  });

  it("that no worker has made yet are no reason for a client to refuse", async () => {
    const services = { ...findServices(), databaseUrl: url };
    await (await openServices(services)).close();
    await withStore(migrateStore);
    await (await openServices(services)).close();
  });

  it("may be looked through again and again while a worker writes", { tags: ["R23"] }, async () => {
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
