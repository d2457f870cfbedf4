/** A real PgBouncer before a real Postgres: what cannot work is refused at the start, with the reason. */
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { sql } from "drizzle-orm";
import { describe, expect, it, onTestFinished } from "vitest";
import { existsSync } from "node:fs";
import { migrateStore, openStore } from "../../activities/store/db.ts";
import { WorkerLease } from "../../activities/store/worker-lease.ts";
import { openServices } from "../../client/connect/connection.ts";
import { endProcess, freePort, launch, tail } from "../../client/setup/processes.ts";
import { findServices } from "../../client/setup/services.ts";
import { probePostgres } from "../../temporal/postgres-probe.ts";
import { within } from "../../temporal/patience.ts";
import { ServiceMissing } from "../../temporal/service-missing.ts";
import { eventually } from "../support/eventually.ts";
import { useDatabase } from "../support/test-database.ts";
import { emptyFolder } from "../support/empty-folder.ts";

const database = useDatabase();
const PROGRAM = "/usr/sbin/pgbouncer";

/** @returns the database's address through the pooler */
async function startPooler(mode: "transaction" | "session", ...settings: string[]): Promise<string> {
  const folder = emptyFolder();
  chmodSync(folder, 0o755);
  const port = await freePort();
  const server = new URL(database.url);
  const [user, password] = [server.username, server.password].map(decodeURIComponent);
  const file = join(folder, "pgbouncer.ini");
  writeFileSync(
    file,
    [
      "[databases]",
      `* = host=${server.hostname} port=${server.port} user=${user} password=${password}`,
      "[pgbouncer]",
      "listen_addr = 127.0.0.1",
      `listen_port = ${port}`,
      "unix_socket_dir =",
      "auth_type = any",
      `pool_mode = ${mode}`,
      ...settings,
    ].join("\n"),
  );
  const log = join(folder, "log");
  // It refuses to run as root.
  const as = process.getuid?.() === 0 ? ["--user=nobody"] : [];
  const mark = await launch({ command: PROGRAM, args: [...as, file], log });
  onTestFinished(async () => {
    await endProcess(mark);
  });
  const pooled = new URL(database.url);
  pooled.host = `127.0.0.1:${port}`;
  await eventually("it listens", () => tail(log, 20).includes("process up"), 20_000);
  return pooled.href;
}

const refusal = (asked: Promise<unknown>) =>
  asked.then(
    () => "none",
    (error: unknown) => {
      expect(error).toBeInstanceOf(ServiceMissing);
      return (error as Error).message;
    },
  );

const open = async (url: string) => {
  const services = await openServices({ ...findServices(), databaseUrl: url });
  await services.close();
};

describe.skipIf(!existsSync(PROGRAM))(`behind a pooler (${PROGRAM}, of the package pgbouncer)`, () => {
  it("that lends connections by the transaction, worker and client end with the reason and a fix", async () => {
    const url = await startPooler("transaction");
    for (const message of [await refusal(probePostgres(url)), await refusal(open(url))]) {
      expect(message).toContain("is behind a pooler in transaction mode at");
      expect(message).toContain("LISTEN");
      expect(message).toContain(
        "Set DATABASE_URL to the server's own address, or to a pool in session mode.",
      );
      expect(message).not.toContain(decodeURIComponent(new URL(url).password));
    }
  });

  it("also with one connection for all, and with many that are lent in turn", async () => {
    for (const settings of [["default_pool_size = 1"], ["server_round_robin = 1", "min_pool_size = 6"]]) {
      const url = await startPooler("transaction", ...settings);
      expect(await refusal(probePostgres(url, within(3_000)))).toContain("transaction mode");
    }
  });

  it("that lends them for as long as they are open, with default settings, everything works", async () => {
    const url = await startPooler("session");
    expect(await probePostgres(url)).toContain("PostgreSQL");
    await open(url);
    const store = openStore({ url, maxConnections: 2 });
    onTestFinished(() => store.close());
    await migrateStore(store);
    const { rows } = await store.db.execute(sql`select current_setting('plan_cache_mode') as plan,
      current_setting('idle_in_transaction_session_timeout') as idle, current_setting('application_name') as name`);
    expect(rows).toEqual([{ plan: "force_generic_plan", idle: "10min", name: "longhaul" }]);
    const options = { url, identity: "w", namespace: "default", frozenMs: 60_000, sessionsAtWork: () => [] };
    const lease = new WorkerLease(options);
    await lease.start();
    expect(await lease.missing()).toEqual([]);
    await lease.stop();
  });

  it("that refuses a parameter of the address, the parameter and what helps are named", async () => {
    const url = new URL(await startPooler("session"));
    url.search = "?options=-c%20search_path%3Dx";
    expect(await refusal(open(url.href))).toMatch(
      /refuses our connections.*unsupported startup parameter.*options/s,
    );
    expect(await refusal(open(url.href))).toContain("ignore_startup_parameters");
    const ignoring = new URL(await startPooler("session", "ignore_startup_parameters = options"));
    ignoring.search = url.search;
    await open(ignoring.href);
  });
});

it("a server itself is not a pooler", async () => {
  expect(await probePostgres(database.url)).toContain("PostgreSQL");
});
