/** Tables in a schema of one's own: chosen by the address or the role, also beside others' tables in `public`. */
import { readdirSync, readFileSync } from "node:fs";
import { expect, inject, it, onTestFinished } from "vitest";
import { grantClient, revokeClient } from "../../activities/store/client-roles.ts";
import { migrateStore, openStore, type Store } from "../../activities/store/db.ts";
import { inSchema } from "../../activities/store/migrate.ts";
import { hasNewerTables } from "../../activities/store/schema-version.ts";
import { createSession, findSession } from "../../activities/store/sessions.ts";
import { WorkerLease } from "../../activities/store/worker-lease.ts";
import { probeTables, mayNotMigrate } from "../../temporal/postgres-probe.ts";
import { configOf } from "../support/run-config.ts";
import { asOwner, ownDatabase } from "../support/own-database.ts";

const server = inject("databaseServer");
const config = configOf({});

function opened(url: string, searchPath?: string): Store {
  const own = new URL(url);
  if (searchPath !== undefined)
    own.search = `?options=${encodeURIComponent(`-c search_path=${searchPath.replaceAll(" ", "\\ ")}`)}`;
  const store = openStore({ url: own.href, maxConnections: 2 });
  onTestFinished(() => store.close());
  return store;
}

const schemasWith = async (store: Store, kind: "tables" | "functions") => {
  const { rows } = await store.pool.query<{ name: string }>(
    kind === "tables"
      ? "select distinct schemaname as name from pg_tables where schemaname !~ '^(pg_|information)' order by 1"
      : "select distinct pronamespace::regnamespace::text as name from pg_proc where proname like 'longhaul%' order by 1",
  );
  return rows.map(({ name }) => name);
};

/** What uses tables, triggers, functions and row policies. */
async function works(operator: Store, openClient: (address: { role: string; password: string }) => Store) {
  await createSession(operator, { id: "hers", task: "t", config, owner: "alice" });
  await createSession(operator, { id: "his", task: "t", config, owner: "bob" });
  const role = await grantClient(operator, "alice", "secret");
  try {
    const alice = openClient({ role, password: "secret" });
    expect(await findSession(alice.db, "hers")).toMatchObject({ id: "hers" });
    expect(await findSession(alice.db, "his")).toBeUndefined();
    await createSession(alice, { id: "new", task: "t", config, owner: "alice" });
    await expect(createSession(alice, { id: "x", task: "t", config, owner: "bob" })).rejects.toMatchObject({
      cause: { code: "42501" },
    });
    expect(await hasNewerTables(alice.db)).toBe(false);
  } finally {
    await revokeClient(operator, "alice");
  }
}

it.each([["longhaul_x"], ["Über 1"]])(
  "a fresh install works in the schema %s, beside one in public",
  async (schema) => {
    const { url } = await ownDatabase("schemas", inject("databaseTemplate"));
    await asOwner(url, `create schema "${schema}"`);
    const path = `"${schema}"`;
    const [own, other] = [opened(url, path), opened(url)];
    await migrateStore(own);
    await migrateStore(own);
    await migrateStore(other);
    const clientAt =
      (searchPath?: string) =>
      ({ role, password }: { role: string; password: string }) => {
        const address = new URL(url);
        [address.username, address.password] = [role, password];
        return opened(address.href, searchPath);
      };
    // The client's role brings its schema itself.
    await works(own, clientAt());
    expect(await findSession(other.db, "hers")).toBeUndefined();
    await works(other, clientAt());
    const left = await own.pool.query(
      "select pg_get_functiondef(oid) as text from pg_proc where pronamespace = $1::regnamespace",
      [path],
    );
    expect(left.rows.length).toBeGreaterThan(5);
    for (const { text } of left.rows as { text: string }[]) expect(text).not.toMatch(/\bpublic\b/);
  },
);

it("a schema that the role's search_path names is used, with nothing of ours in public", async () => {
  const { name, url } = await ownDatabase("schemas");
  const role = `${name}_role`;
  await asOwner(
    url,
    `create role ${role} login password 'p'`,
    `create schema longhaul_x authorization ${role}`,
    `alter role ${role} set search_path = longhaul_x, public`,
  );
  onTestFinished(() => asOwner(server, `drop role ${role}`));
  const address = new URL(url);
  [address.username, address.password] = [role, "p"];
  const store = openStore({ url: address.href, maxConnections: 2 });
  await migrateStore(store);
  expect(await schemasWith(store, "tables")).toEqual(["longhaul_x"]);
  expect(await schemasWith(store, "functions")).toEqual(["longhaul_x"]);
  await createSession(store, { id: "s", task: "t", config });
  await store.close();
  await asOwner(url, `drop owned by ${role}`);
});

it("what keeps the tables from being made is told with the statement that helps", async () => {
  const { name, url } = await ownDatabase("schemas", inject("databaseTemplate"));
  const role = `${name} "role"`;
  const quotedRole = `"${role.replaceAll('"', '""')}"`;
  await asOwner(url, `create role ${quotedRole} login password 'p'`, "create schema closed");
  onTestFinished(() => asOwner(server, `drop role ${quotedRole}`));
  const address = new URL(url);
  [address.username, address.password] = [encodeURIComponent(role), "p"];
  const refusal = async (path?: string) => {
    const store = opened(address.href, path);
    const migrated = await migrateStore(store).then(
      () => undefined,
      (error: unknown) => mayNotMigrate(error, address.href)?.message,
    );
    // Doctor says the same, and changes nothing.
    const at = new URL(address.href);
    if (path !== undefined) at.search = `?options=${encodeURIComponent(`-c search_path=${path}`)}`;
    const looked = await probeTables(at.href).then(String, (error: Error) => error.message);
    expect(looked.replace(/ at \S+/, "")).toBe(migrated?.replace(/ at \S+/, ""));
    return migrated;
  };
  expect(await refusal("gone")).toMatch(/no schema of the search_path \(gone\).*CREATE SCHEMA/s);
  await asOwner(url, `grant usage on schema closed to ${quotedRole}`);
  expect(await refusal("closed")).toContain(`GRANT USAGE, CREATE ON SCHEMA closed TO ${quotedRole};`);
  // Later a schema with the role's name comes up: the tables in public do not vanish behind it.
  await asOwner(url, `create schema authorization ${quotedRole}`);
  expect(await refusal()).toMatch(/the tables are in the schema public, but new ones would go to/);
  await asOwner(url, `drop owned by ${quotedRole}`);
});

it("workers of two schemas do not take each other's leases for their own", async () => {
  const { url } = await ownDatabase("schemas", inject("databaseTemplate"));
  await asOwner(url, "create schema longhaul_x");
  const own = opened(url, "longhaul_x");
  await migrateStore(own);
  const there = new URL(url);
  there.search = "?options=-c%20search_path%3Dlonghaul_x";
  const options = {
    identity: "w",
    namespace: "default",
    frozenMs: 60_000,
    sessionsAtWork: () => [],
    settlingMs: 0,
  };
  const [first, second] = [url, there.href].map((of) => new WorkerLease({ ...options, url: of }));
  if (first === undefined || second === undefined) throw new Error("No leases.");
  await first.start();
  await second.start();
  expect(await second.missing()).toEqual([]);
  await first.stop();
  await second.stop();
});

it("no migration names public but in the forms that are turned to the chosen schema", () => {
  const folder = new URL("../../activities/store/migrations/", import.meta.url);
  for (const file of readdirSync(folder).filter((name) => name.endsWith(".sql"))) {
    const code = readFileSync(new URL(file, folder), "utf8").replaceAll(/^--.*$/gm, "");
    expect(inSchema(code, "mine"), file).not.toMatch(/\bpublic\b/);
  }
});
