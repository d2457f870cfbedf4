/** Servers and roles as operators have them: read-only after a failover, another encoding, few rights, a strict start. */
import { randomBytes } from "node:crypto";
import { connect, createServer } from "node:net";
import { sql } from "drizzle-orm";
import { expect, inject, it, onTestFinished } from "vitest";
import { migrateStore, openStore, type Store } from "../../activities/store/db.ts";
import { probePostgres, mayNotMigrate } from "../../temporal/postgres-probe.ts";
import { listen } from "../support/listen.ts";
import { asOwner, ownDatabase } from "../support/own-database.ts";
import { dropDatabase } from "../support/services.ts";

const server = inject("databaseServer");
const newName = () => `conditions_${randomBytes(6).toString("hex")}`;

it("a role that may not create schemas migrates; one that may not create tables is told so", async () => {
  const { name, url } = await ownDatabase("conditions");
  const role = `${name}_role`;
  await asOwner(
    url,
    `create role ${role} login password 'p'`,
    `revoke create on database ${name} from ${role}`,
  );
  onTestFinished(() => asOwner(server, `drop role ${role}`));
  const own = new URL(url);
  [own.username, own.password] = [role, "p"];
  const store = openStore({ url: own.href, maxConnections: 1 });
  const refused = await migrateStore(store).then(
    () => undefined,
    (error: unknown) => mayNotMigrate(error, own.href)?.message,
  );
  expect(refused).toMatch(/GRANT USAGE, CREATE ON SCHEMA public TO "conditions_.*_role"/);
  await asOwner(url, `grant usage, create on schema public to ${role}`);
  await migrateStore(store);
  // As often as one likes.
  await migrateStore(store);
  await store.close();
  await asOwner(url, `drop owned by ${role}`);
});

it("a database with another encoding than UTF8 ends a start by its name", async () => {
  const name = newName();
  await asOwner(server, `create database ${name} encoding 'LATIN1' locale 'C' template template0`);
  onTestFinished(() => dropDatabase(server, name));
  const url = new URL(server);
  url.pathname = `/${name}`;
  await expect(probePostgres(url.href)).rejects.toThrow(
    /has a database with the encoding LATIN1 at .*needs? UTF8|texts need UTF8/,
  );
});

it("a connection that only reads is not pooled again", async () => {
  const { url } = await ownDatabase("conditions");
  const store = openStore({ url, maxConnections: 1 });
  onTestFinished(() => store.close());
  await store.db.execute("create table t (a int)");
  const pidOf = async () =>
    (await store.db.execute<{ pid: number }>("select pg_backend_pid() as pid")).rows[0]?.pid;
  const before = await pidOf();
  await store.db.transaction(async (tx) => void (await tx.execute("select 1")));
  expect(await pidOf()).toBe(before);
  const failed = store.db.transaction(async (tx) => {
    await tx.execute("set transaction read only");
    await tx.execute("insert into t values (1)");
  });
  await expect(failed).rejects.toMatchObject({ cause: { code: "25006" } });
  expect(await pidOf()).not.toBe(before);
});

it("a server in between that takes no parameters at the start is used", async () => {
  const { hostname, port } = new URL(server);
  const starts: string[] = [];
  const strict = createServer((client) => {
    client.once("data", (first) => {
      const [, ...words] = first.subarray(8).toString("latin1").split("\0");
      const names = ["user", ...words].filter((_word, index) => index % 2 === 0 && _word !== "");
      starts.push(...names);
      if (names.some((name) => !["user", "database", "client_encoding"].includes(name)))
        return void client.destroy();
      const upstream = connect(Number(port), hostname);
      upstream.write(first);
      upstream.pipe(client).pipe(upstream);
      for (const end of [client, upstream])
        end.on("error", () => [client, upstream].forEach((one) => one.destroy()));
    });
  });
  const between = new URL(server);
  [between.hostname, between.port] = ["127.0.0.1", String(await listen(strict))];
  const store = openStore({ url: between.href, maxConnections: 1 });
  onTestFinished(() => store.close());
  expect(await settingsOf(store)).toEqual(["force_generic_plan", "10min", "longhaul"]);
  expect(starts).toContain("user");
});

const settingsOf = async (store: Store) =>
  Object.values(
    (
      await store.db.execute<Record<string, string>>(
        sql`select current_setting('plan_cache_mode') a, current_setting('idle_in_transaction_session_timeout') b, current_setting('application_name') c`,
      )
    ).rows[0] ?? {},
  );

it("what the address or the role sets for a connection stays", async () => {
  const { name, url } = await ownDatabase("conditions");
  const role = `${name}_role`;
  await asOwner(
    url,
    `create role ${role} login password 'p'`,
    `alter role ${role} set plan_cache_mode = 'force_custom_plan'`,
  );
  onTestFinished(() => asOwner(server, `drop role ${role}`));
  const own = new URL(url);
  own.search =
    "?application_name=mine&options=-c%20plan_cache_mode%3Dauto%20-c%20idle_in_transaction_session_timeout%3D5s";
  const ofAddress = openStore({ url: own.href, maxConnections: 1 });
  onTestFinished(() => ofAddress.close());
  expect(await settingsOf(ofAddress)).toEqual(["auto", "5s", "mine"]);
  [own.username, own.password, own.search] = [role, "p", ""];
  const ofRole = openStore({ url: own.href, maxConnections: 1 });
  expect(await settingsOf(ofRole)).toEqual(["force_custom_plan", "10min", "longhaul"]);
  await ofRole.close();
});

it("a migration that fails leaves no connection with the lock or a transaction", async () => {
  const { url } = await ownDatabase("conditions");
  await asOwner(url, "create table sandboxes (in_the_way int)");
  const store = openStore({ url, maxConnections: 1 });
  onTestFinished(() => store.close());
  await expect(migrateStore(store)).rejects.toThrow("sandboxes");
  expect(store.pool.totalCount).toBe(0);
});

/** As many connections as the pool may have, all idle. */
async function filled(store: Store, count: number): Promise<void> {
  const clients = await Promise.all(Array.from({ length: count }, () => store.pool.connect()));
  for (const client of clients) {
    await client.query("set default_transaction_read_only = on");
    client.release();
  }
}

it("after a failover to read-only, every query is repeated at once on a new connection", async () => {
  const { url } = await ownDatabase("conditions");
  const store = openStore({ url, maxConnections: 4 });
  onTestFinished(() => store.close());
  await store.db.execute("create table t (a int)");
  await filled(store, 4);
  const bodies: number[] = [];
  const insert = (a: number) => sql`insert into t values (${a})`;
  await Promise.all(
    Array.from({ length: 12 }, async (_, a) => {
      if (a % 3 === 0) return void (await store.db.execute(insert(a)));
      if (a % 3 === 1) return void (await store.pool.query("insert into t values ($1)", [a]));
      await store.db.transaction(async (tx) => {
        bodies.push(a);
        await tx.execute(insert(a));
      });
    }),
  );
  const { rows } = await store.db.execute<{ a: number }>("select a from t order by a");
  expect(rows.map(({ a }) => a)).toEqual(Array.from({ length: 12 }, (_, a) => a));
  expect(Math.max(...bodies.map((a) => bodies.filter((other) => other === a).length))).toBeLessThanOrEqual(2);
});

it("a transaction that has done something is not repeated; the next one has a new connection", async () => {
  const { url } = await ownDatabase("conditions");
  const store = openStore({ url, maxConnections: 2 });
  onTestFinished(() => store.close());
  await store.db.execute("create table t (a int)");
  await filled(store, 2);
  let bodies = 0;
  const work = () =>
    store.db.transaction(async (tx) => {
      bodies += 1;
      await tx.execute("select 1");
      await tx.execute("insert into t values (1)");
    });
  await expect(work()).rejects.toMatchObject({ cause: { code: "25006" } });
  expect(bodies).toBe(1);
  await work();
  expect(bodies).toBe(2);
});

/** Stands between: `fail` leaves what is open without a server, and tells so only when the client says something. */
async function failingOver() {
  const { hostname, port } = new URL(server);
  const generation = { current: 0 };
  const between = createServer((client) => {
    const born = generation.current;
    const upstream = connect(Number(port), hostname);
    client.on("data", (bytes) => {
      if (born === generation.current) return void upstream.write(bytes);
      upstream.destroy();
      client.resetAndDestroy();
    });
    upstream.on("data", (bytes) => born === generation.current && client.write(bytes));
    for (const end of [client, upstream]) end.on("error", () => undefined);
    client.on("close", () => upstream.destroy());
  });
  return { port: await listen(between), fail: () => (generation.current += 1) };
}

it("after a failover that cut connections, reads and what has not begun are repeated, no write", async () => {
  const { url } = await ownDatabase("conditions");
  const between = await failingOver();
  const address = new URL(url);
  [address.hostname, address.port] = ["127.0.0.1", String(between.port)];
  const store = openStore({ url: address.href, maxConnections: 3 });
  onTestFinished(() => store.close());
  await store.db.execute("create table t (a int)");
  const fill = async () => {
    const clients = await Promise.all([1, 2, 3].map(() => store.pool.connect()));
    for (const client of clients) client.release();
    between.fail();
  };
  await fill();
  const read = () => store.db.execute<{ n: number }>("select count(*)::int as n from t");
  expect((await Promise.all([read(), read(), read()])).map(({ rows }) => rows[0]?.n)).toEqual([0, 0, 0]);
  await fill();
  await store.db.transaction(async (tx) => void (await tx.execute("insert into t values (1)")));
  await fill();
  await expect(store.db.execute("insert into t values (2)")).rejects.toThrow("Failed query");
  await store.db.execute("insert into t values (3)");
  expect((await store.db.execute<{ a: number }>("select a from t order by a")).rows).toEqual([
    { a: 1 },
    { a: 3 },
  ]);
});
