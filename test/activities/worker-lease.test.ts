/** Who counts as a lost worker, if leases are lost for other reasons than a worker's end. */
import pg from "pg";
import { expect, it, onTestFinished } from "vitest";
import { openStore } from "../../activities/store/db.ts";
import { toApplicationName, WorkerLease } from "../../activities/store/worker-lease.ts";
import { eventually } from "../support/eventually.ts";
import { createTestDatabase } from "../support/test-database.ts";
import { perTest } from "../support/per-file.ts";

const database = perTest(
  () => createTestDatabase(5),
  (made) => made.drop(),
);

const SETTLING_MS = 1_500;
const FROZEN_MS = 1_500;

async function hold(
  identity: string,
  sessionsAtWork: () => readonly string[] = () => [],
): Promise<WorkerLease> {
  const lease = new WorkerLease({
    url: database.url,
    identity,
    namespace: "default",
    frozenMs: FROZEN_MS,
    sessionsAtWork,
    settlingMs: SETTLING_MS,
  });
  onTestFinished(() => lease.stop());
  await lease.start();
  return lease;
}

/** A worker that holds its lease and does nothing else. */
async function holdSilently(identity: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: database.url });
  client.on("error", () => undefined);
  onTestFinished(() => client.end().catch(() => undefined));
  await client.connect();
  const { rows } = await client.query<{ id: number }>(
    "insert into workers (identity, namespace) values ($1, 'default') returning id",
    [identity],
  );
  await client.query("select pg_advisory_lock(7305143, $1)", [rows[0]?.id]);
  return client;
}

const backends = async () => {
  const { rows } = await database.store.pool.query<{ pid: number }>(
    "select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and application_name like 'longhaul-lease%'",
  );
  return rows.map(({ pid }) => pid);
};
const identities = async (lease: WorkerLease) => (await lease.missing()).map(({ identity }) => identity);
/** On a server that has been up for long: one that has just started reports none as missing until leases settle. */
const untilMissing = (lease: WorkerLease, identity: string) =>
  eventually(`${identity} is missing`, async () => (await identities(lease)).includes(identity), 20_000);

it("no worker is judged dead until leases could come back to a server in Postgres' place", async () => {
  const lease = await hold("survivor");
  const gone = await holdSilently("gone before");
  await gone.end();
  await untilMissing(lease, "gone before");
  const other = await holdSilently("slow to come back");
  const before = await backends();
  // What a failover is to its clients: every connection is lost at once, and a server answers that has been up for long.
  await database.store.pool.query(
    "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()",
  );
  await eventually("the lease is held again", async () =>
    (await backends()).some((pid) => !before.includes(pid)),
  );
  expect(await lease.missing()).toEqual([]);
  await untilMissing(lease, "slow to come back");
  await other.end().catch(() => undefined);
});

it("a silent worker that holds its lease is frozen: it is not ended, and its work is freed", async () => {
  const lease = await hold("live");
  const second = await hold("live too");
  await holdSilently("frozen");
  await untilMissing(lease, "frozen");
  const [frozen] = await lease.missing();
  expect(frozen).toMatchObject({ identity: "frozen", frozen: true });
  if (!frozen) return;
  const done = await lease.settle(frozen, async () => {
    expect(await second.settle(frozen, () => Promise.reject(new Error("two at once")))).toBe(false);
  });
  expect(done).toBe(true);
  // It may wake up: it still counts as a worker.
  expect(await identities(lease)).toEqual(["frozen"]);
});

it("a worker notes the sessions it works for at each check; whoever finds it lost sees them", async () => {
  let atWork = ["one", "two"];
  const worker = await hold("at work", () => atWork);
  const lease = await hold("survivor");
  const noted = async () => {
    const { rows } = await database.store.pool.query<{ sessions: string[]; version: string }>(
      "select sessions, xmin::text as version from workers where identity = 'at work'",
    );
    return rows[0];
  };
  await worker.missing();
  const first = await noted();
  expect(first?.sessions).toEqual(["one", "two"]);
  await worker.missing();
  // Nothing has changed, so nothing is written.
  expect(await noted()).toEqual(first);
  atWork = ["three"];
  await worker.missing();
  expect((await noted())?.sessions).toEqual(["three"]);

  await worker.stop();
  expect((await noted())?.sessions).toEqual([]);

  const silent = await holdSilently("silent");
  await database.store.pool.query("update workers set sessions = '{four}' where identity = 'silent'");
  await silent.end();
  await untilMissing(lease, "silent");
  expect(await lease.missing()).toMatchObject([{ identity: "silent", sessions: ["four"] }]);
});

it("a lost worker's open transactions, and nobody else's, are ended when its work moves", async () => {
  const lease = await hold("survivor");
  const silent = await holdSilently("frozen");
  const stores = ["frozen", "frozen two", "live"].map((identity) =>
    openStore({ url: database.url, maxConnections: 2, applicationName: toApplicationName(identity) }),
  );
  onTestFinished(async () => void (await Promise.all(stores.map((store) => store.close()))));
  // A connection that is ended may say so twice: the server's last words, and the end.
  const ended = new Set<string>();
  const clients = await Promise.all(stores.map(({ pool }) => pool.connect()));
  for (const [at, client] of clients.entries()) {
    client.on("error", () => void ended.add(["frozen", "frozen two", "live"][at] ?? ""));
    await client.query("begin");
    await client.query("select pg_advisory_xact_lock($1)", [1_000 + at]);
  }
  const { pool } = database.store;
  const waits = pool.query("select pg_advisory_lock(1000)");
  await untilMissing(lease, "frozen");
  const [frozen] = await lease.missing();
  if (frozen === undefined) throw new Error("It is not missing.");
  // A transaction may rest for a while: only one as old as the silence counts.
  await eventually("the lock is free", async () => {
    await lease.settle(frozen, () => Promise.resolve());
    return ended.has("frozen");
  });
  await waits;
  expect([...ended]).toEqual(["frozen"]);
  for (const client of clients.slice(1))
    expect((await client.query("select 1 as one")).rows).toEqual([{ one: 1 }]);
  for (const client of clients) client.release(true);
  await silent.end();
});

it("a worker's name in Postgres is short and plain, whatever its host is called", () => {
  expect(toApplicationName("12.345@h\u00f6st:1")).toBe("longhaul 12.345@h?st:1");
  expect(toApplicationName(`12.345@${"x".repeat(200)}`)).toHaveLength(63);
});
