/** Servers and roles as operators have them: read-only after a failover, another encoding, few rights, a strict start. */
import { randomBytes } from "node:crypto";
import { connect, createServer } from "node:net";
import pg from "pg";
import { expect, inject, it, onTestFinished } from "vitest";
import { migrateStore, openStore } from "../../activities/store/db.ts";
import { probePostgres } from "../../worker/connect/probe.ts";
import { mayNotMigrate } from "../../worker/connect/postgres-missing.ts";
import { listen } from "../support/listen.ts";
import { createDatabase, dropDatabase } from "../support/services.ts";

const server = inject("databaseServer");
const newName = () => `conditions_${randomBytes(6).toString("hex")}`;

/** Runs statements as the superuser. */
async function asOwner(url: string, ...statements: readonly string[]): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    for (const statement of statements) await client.query(statement);
  } finally {
    await client.end();
  }
}

async function emptyDatabase(): Promise<{ readonly name: string; readonly url: string }> {
  const name = newName();
  const url = await createDatabase(server, name);
  onTestFinished(() => dropDatabase(server, name));
  return { name, url };
}

it("a role without the right to create schemas migrates; one that may not create tables is told what it lacks", async () => {
  const { name, url } = await emptyDatabase();
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
  const { url } = await emptyDatabase();
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

it("a server in between that takes no options at the start is used", async () => {
  const { hostname, port } = new URL(server);
  const starts: string[] = [];
  const strict = createServer((client) => {
    client.once("data", (first) => {
      starts.push(first.toString("latin1"));
      if (first.includes("options\0")) return void client.destroy();
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
  const { rows } = await store.db.execute<{ plan_cache_mode: string }>("show plan_cache_mode");
  expect(rows).toEqual([{ plan_cache_mode: "force_generic_plan" }]);
  await store.close();
  expect(starts).toHaveLength(1);
});
