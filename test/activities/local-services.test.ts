/** A real Postgres of our own, brought up, lost and brought up again. */
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { migrateStore, openStore } from "../../activities/store/db.ts";
import { probePostgres } from "../../temporal/postgres-probe.ts";
import { probeDocker, probeTemporal } from "../../temporal/probe.ts";
import { isAlive } from "../../client/setup/processes.ts";
import { until } from "../../temporal/patience.ts";
import { ServiceMissing } from "../../temporal/service-missing.ts";
import { bringDown, bringUp } from "../../client/setup/services.ts";
import { readState } from "../../client/setup/state.ts";
import { emptyFolder } from "../support/empty-folder.ts";

/** Private, as a clone in root's home is: the server's own user cannot enter it. */
const home = emptyFolder(afterAll);
const lines: string[] = [];
const options = () => ({ home, ports: "free" as const, say: (line: string) => void lines.push(line) });

beforeAll(() => {
  process.env["OPENAI_API_KEY"] ??= "very-secret-word";
});
afterAll(() => bringDown(options()));

async function query(url: string, sql: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}

test("a second bring-up finds what the first one started, and says nothing", async () => {
  const first = await bringUp({ ...options(), need: ["postgres"] });
  await query(first.databaseUrl, "create table kept as select 42 as answer");
  lines.length = 0;
  const second = await bringUp({ ...options(), need: ["postgres"] });
  expect(second.databaseUrl).toBe(first.databaseUrl);
  expect(lines).toEqual([]);
});

test("a server that was killed is started again, with its data", async () => {
  const lost = readState(home).services.postgres;
  if (lost === undefined) throw new Error("nothing was started");
  // On a second try it is gone already: another program may have taken its port meanwhile, and the first start failed.
  if (await isAlive(lost)) process.kill(lost.pid, "SIGKILL");
  await until(async () => !(await isAlive(lost)), 5_000);
  const { databaseUrl } = await bringUp({ ...options(), need: ["postgres"] });
  expect(await query(databaseUrl, "select answer from kept")).toEqual([{ answer: 42 }]);
});

test("the worker's role owns its database and has no rights beyond it", async () => {
  const { databaseUrl } = await bringUp({ ...options(), need: ["postgres"] });
  expect(new URL(databaseUrl).username).toBe("longhaul");
  const store = openStore({ url: databaseUrl, maxConnections: 1 });
  await migrateStore(store);
  await store.close();
  expect(
    await query(
      databaseUrl,
      "select rolsuper, rolcreatedb, rolcreaterole from pg_roles where rolname = current_user",
    ),
  ).toEqual([{ rolsuper: false, rolcreatedb: false, rolcreaterole: false }]);
  for (const sql of [
    "copy (select 1) to program 'cat'",
    "select pg_read_file('/etc/passwd')",
    "create database another",
    "create role another superuser",
  ])
    await expect(query(databaseUrl, sql)).rejects.toThrow(/permission denied/);
});

test("what was started has no key of ours in its environment, and no one else can read its files", async () => {
  const running = readState(home).services.postgres;
  expect(readFileSync(`/proc/${running?.pid}/environ`, "utf8")).not.toContain("very-secret-word");
  const open = [
    "",
    "logs",
    "services.json",
    "logs/postgres.log",
    "postgres/password",
    "postgres/worker-password",
  ].filter((path) => (statSync(join(home, path)).mode & 0o077) !== 0);
  expect(open).toEqual([]);
});

test("bringing down ends what was started, and nothing a second time", async () => {
  const running = readState(home).services.postgres;
  expect(await bringDown(options())).toEqual({ ended: ["postgres"] });
  expect(running !== undefined && (await isAlive(running))).toBe(false);
  expect(await bringDown(options())).toEqual({ ended: [] });
});

test.each([
  ["Postgres", () => probePostgres("postgres://longhaul:very-secret-word@127.0.0.1:1/longhaul")],
  ["Temporal", () => probeTemporal("127.0.0.1:1")],
  ["Docker engine", () => probeDocker({ DOCKER_HOST: "tcp://127.0.0.1:1" })],
])(
  "%s that does not answer is named within 5 s, with its address, a fix and no password",
  async (service, probe) => {
    const began = Date.now();
    const error: unknown = await probe().then(
      () => undefined,
      (reason: unknown) => reason,
    );
    if (!(error instanceof ServiceMissing)) throw new Error("it was not missed");
    expect(error.service).toBe(service);
    expect(error.address).toContain("127.0.0.1:1");
    expect(error.fix.length).toBeGreaterThan(10);
    expect(error.message).not.toContain("very-secret-word");
    expect(Date.now() - began).toBeLessThan(5_000);
  },
);

test("a server without the namespace is not replaced by another, which would hide its sessions", async () => {
  const { temporalAddress } = await bringUp({ ...options(), need: ["temporal"] });
  const before = readState(home).services.temporal;
  vi.stubEnv("TEMPORAL_NAMESPACE", "mistyped");
  onTestFinished(() => void vi.unstubAllEnvs());
  const failure = await bringUp({ ...options(), need: ["temporal"] }).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(ServiceMissing);
  expect(String(failure)).toMatch(/mistyped[^]*TEMPORAL_NAMESPACE/);
  expect(readState(home).services.temporal).toEqual(before);
  vi.unstubAllEnvs();
  expect((await bringUp({ ...options(), need: ["temporal"] })).temporalAddress).toBe(temporalAddress);
});
