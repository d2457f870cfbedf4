/** The id of a session proves nothing: a row is taken over only if it is the one that was asked for, and Postgres says so too. */
import { randomBytes } from "node:crypto";
import fc from "fast-check";
import { eq, sql } from "drizzle-orm";
import pg from "pg";
import { beforeAll, afterAll, describe, expect, it } from "vitest";
import { createActivities, type AgentDeps } from "../../activities/index.ts";
import { toChildId } from "../../activities/delegates/open-delegate.ts";
import { makeOrAdopt } from "../../activities/store/adopt-session.ts";
import {
  beginItem,
  isTakenId,
  openBatch,
  saveItem,
  createSchedule,
  findSchedule,
  removeSchedule,
} from "../../activities/store/batches.ts";
import { migrateStore } from "../../activities/store/migrate.ts";
import { grantClient, revokeClient } from "../../activities/store/client-roles.ts";
import { tableRights } from "../../activities/store/client-rights.ts";
import { batchItems, sessions } from "../../activities/store/schema/index.ts";
import { createSession, type NewSession } from "../../activities/store/sessions.ts";
import { attemptOf, loneDeps } from "../support/lone-deps.ts";
import { configOf } from "../support/run-config.ts";
import { useDatabase } from "../support/test-database.ts";

const database = useDatabase();
const config = configOf({});
const store = () => database.store;
const CHECK = "23514";
const DENIED = "42501";

const codeOf = (promise: Promise<unknown>) =>
  promise.then(
    () => "done",
    (error: { code?: string; cause?: { code?: string } }) => error.code ?? error.cause?.code,
  );

/** A row that no client can write, since the trigger is not asked. */
async function planted({ id, task, owner, parent }: NewSession): Promise<void> {
  await store().db.transaction(async (tx) => {
    await tx.execute(sql`set local session_replication_role = replica`);
    const [parentId, parentCall, parentEpoch] = [parent?.id, parent?.call, parent?.epoch];
    const access = parent?.access;
    await tx.insert(sessions).values({ id, task, config, owner, parentId, parentCall, parentEpoch, access });
  });
}

function worker(more: Partial<AgentDeps> = {}) {
  const model: AgentDeps["model"] = { ask: () => expect.fail("No model is asked.") };
  return createActivities(loneDeps(store(), { model, defaultConfig: config, ...more }));
}

describe("an existing session", () => {
  it("is taken over only if owner, parent's call and task agree", async () => {
    await createSession(store(), { id: "p", task: "t", config, owner: "bob" });
    const parent = { id: "p", call: "s1c0", epoch: 1, access: "write" } as const;
    const asked: NewSession = { id: "p.s1c0", task: "Do it.", config, owner: "bob", parent };
    const others: NewSession[] = [
      { id: asked.id, task: asked.task, config, owner: "bob" },
      { ...asked, owner: "alice" },
      { ...asked, owner: undefined },
      { ...asked, task: "Do that." },
      { ...asked, parent: { ...parent, id: "q" } },
      { ...asked, parent: { ...parent, call: "s2c0" } },
      { ...asked, parent: { ...parent, epoch: 2 } },
      { ...asked, parent: { ...parent, access: "read" } },
    ];
    for (const other of others) {
      await planted(other);
      expect(await makeOrAdopt(store(), asked), JSON.stringify(other)).toBe(false);
      await store().db.execute(sql`delete from sessions where id = ${asked.id}`);
    }
    expect(await makeOrAdopt(store(), asked)).toBe(true);
    expect(await makeOrAdopt(store(), asked)).toBe(true);
  });

  it("of another person is not opened, ended or read by a run that Temporal starts under its id", async () => {
    await createSession(store(), { id: "hers", task: "Mine.", config, owner: "alice" });
    const before = await store().db.select().from(sessions).where(eq(sessions.id, "hers"));
    const run = attemptOf("hers", "run-x");
    await createSchedule(store().db, { name: "her", task: "Mine.", config, owner: "bob" });
    for (const input of [{ task: "Mine." }, { task: "Other." }, { schedule: "her" }, { schedule: "hers" }])
      await expect(
        run.run(async () => worker().openSession({ chain: "run-x", ...input })),
        JSON.stringify(input),
      ).rejects.toMatchObject({ type: "IdTaken" });
    const closed = await run.run(async () =>
      worker().closeSession({
        step: 0,
        neverOpened: {},
        status: "failed",
        error: { type: "IdTaken", message: "" },
      }),
    );
    expect(closed).toMatchObject({ status: "failed", result: "", usage: { calls: 0 } });
    expect(await store().db.select().from(sessions).where(eq(sessions.id, "hers"))).toEqual(before);
  });

  it("is not made under a delegate's id by a run that was started with a task", async () => {
    for (const input of [{ task: "Mine." }, { schedule: "p" }]) {
      await createSchedule(store().db, { name: "p", task: "t", config, owner: "bob" });
      const opened = attemptOf("p-1.s7c0", "run-y").run(async () =>
        worker().openSession({ chain: "run-y", ...input }),
      );
      await expect(opened).rejects.toMatchObject({ type: "IdTaken" });
    }
  });
});

describe("Postgres", () => {
  it("gives a derived id to the delegate of just that call, and to nobody else", async () => {
    const number = fc.nat({ max: 40 });
    const epoch = fc.integer({ min: 1, max: 4 });
    await fc.assert(
      fc.asyncProperty(number, number, epoch, async (step, index, at) => {
        const sessionId = `x-${randomBytes(6).toString("hex")}`;
        const id = toChildId({ sessionId, step, index, epoch: at });
        const call = `${at === 1 ? "" : `e${at}`}s${step}c${index}`;
        const child = (more: object): NewSession => ({
          id,
          task: "t",
          config,
          owner: "bob",
          parent: { id: sessionId, call, epoch: at, access: "read", ...more },
        });
        await createSession(store(), { id: sessionId, task: "t", config, owner: "bob" });
        const bad: NewSession[] = [
          { id, task: "t", config, owner: "bob" },
          { id: id.toUpperCase(), task: "t", config },
          child({ id: "p" }),
          child({ call: `s${step}c${index + 1}` }),
          { ...child({}), owner: "alice" },
          { ...child({}), id: `${id}0` },
        ];
        for (const session of bad) expect(await codeOf(createSession(store(), session))).toBe(CHECK);
        expect(await createSession(store(), child({}))).toBe(true);
      }),
      { numRuns: 25 },
    );
  });

  it("keeps the id of a batch's item for its session", async () => {
    const { db } = store();
    const limits = { concurrency: 1, stopAfter: null, maxCostUsd: null };
    await openBatch(db, { id: "b", owner: "bob", ...limits });
    await openBatch(db, { id: "b-c", owner: "bob", ...limits });
    const item = { ordinal: 1, digest: "d", attempt: 1, workspace: undefined };
    const start = { task: "t", config, owner: "bob" };
    await saveItem(db, "b", { ...item, itemId: "c-d", sessionId: "b-c-d", start });
    // The same id by another way of cutting it.
    expect(await isTakenId(db, "b-c-d", { batchId: "b-c", itemId: "d" })).toBe(true);
    expect(await isTakenId(db, "b-c-d", { batchId: "b", itemId: "c-d" })).toBe(false);
    expect(await isTakenId(db, "a-b.s1c0", { batchId: "a", itemId: "b.s1c0" })).toBe(true);
    for (const other of [{ owner: "alice" }, { task: "other" }, { owner: undefined }])
      expect(await createSession(store(), { id: "b-c-d", ...start, ...other })).toBe(false);
    // Another of the same person with the same task, but with other settings.
    await createSession(store(), {
      id: "b-c-d",
      ...start,
      config: configOf({ sandbox: { network: "none" } }),
    });
    const taken = await attemptOf("batch:b", "run-b").run(async () =>
      worker().takeBatchItems({ after: 0, count: 2 }),
    );
    expect(taken).toEqual([]);
    const [row] = await db.select().from(batchItems).where(eq(batchItems.batchId, "b"));
    expect(row).toMatchObject({ status: "failed", failure: "IdTaken" });
  });

  it("lets no batch follow, count or cancel the session of another person", async () => {
    const { db } = store();
    await createSession(store(), { id: "bobs", task: "t", config, owner: "bob" });
    await openBatch(db, { id: "sly", owner: "alice", concurrency: 1, stopAfter: null, maxCostUsd: null });
    await saveItem(db, "sly", {
      itemId: "i",
      ordinal: 1,
      digest: "d",
      attempt: 1,
      sessionId: "bobs",
      start: { task: "t", config },
      workspace: undefined,
    });
    await beginItem(db, "sly", "i");
    const taken = await attemptOf("batch:sly", "run-s").run(async () =>
      worker().takeBatchItems({ after: 0, count: 1 }),
    );
    expect(taken).toEqual([]);
  });
});

describe("a client's role", () => {
  const person = `alice-${randomBytes(3).toString("hex")}`;
  let pool: pg.Pool;
  let role: string;
  const ask = (text: string, values: readonly unknown[] = []) => codeOf(pool.query(text, [...values]));
  beforeAll(async () => {
    role = await grantClient(store(), person, "secret");
    const url = new URL(database.url);
    [url.username, url.password] = [encodeURIComponent(role), "secret"];
    pool = new pg.Pool({ connectionString: url.href, max: 2 });
    // Revoking the role ends what is left of its connections.
    pool.on("error", () => undefined);
    pool.on("connect", (client) => client.on("error", () => undefined));
    await createSession(store(), { id: "alices", task: "t", config, owner: person });
  });
  afterAll(async () => {
    await pool.end();
    await revokeClient(store(), person);
  });

  it("is granted and revoked while others are, and while workers start", async () => {
    const persons = Array.from({ length: 6 }, (_, n) => `${person}-${n}`);
    const starts = () => Array.from({ length: 3 }, () => migrateStore(store()));
    await Promise.all([...persons.map((one) => grantClient(store(), one, "secret")), ...starts()]);
    const revoked = await Promise.all([
      ...persons.map((one) => revokeClient(store(), one)),
      ...persons.map((one) => grantClient(store(), `${one}-b`, "secret").then(() => true)),
      ...starts().map((start) => start.then(() => true)),
    ]);
    expect(revoked).toEqual(revoked.map(() => true));
    for (const one of persons) expect(await revokeClient(store(), `${one}-b`)).toBe(true);
  });

  it("makes no session with a derived id, in any of its forms", async () => {
    const insert = "insert into sessions (id, task, config, owner) values ($1, 't', '{}', $2)";
    for (const id of ["BOB.s1c0", "bob.S1C0e2", "nightly-2026-11-26T02:00:00Z", "a b", "-a", "x".repeat(65)])
      expect([CHECK, DENIED], id).toContain(await ask(insert, [id, person]));
    expect(await ask(insert, [`nightly-2026-11-26T02-00-00Z-0123456789ab`, person])).toBe(DENIED);
    const asChild =
      "insert into sessions (id, task, config, owner, parent_id, parent_call) values ($1, 't', '{}', $2, $3, $4)";
    expect(await ask(asChild, ["alices.s1c0", person, "alices", "s1c0"])).toBe(DENIED);
    expect(await ask(insert, ["ordinary", person])).toBe("done");
  });

  it("gives no row a number that its sequence has not just given it", async () => {
    const { rows } = await store().db.execute<{ table: string; column: string }>(sql`
      select c.relname as table, a.attname as column from pg_class c join pg_attribute a on a.attrelid = c.oid
      where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and a.attnum > 0
        and pg_get_serial_sequence(c.oid::regclass::text, a.attname) is not null
        and has_column_privilege(${role}, c.oid, a.attname, 'insert')`);
    expect(rows.length).toBeGreaterThan(4);
    for (const { table, column } of rows) {
      const { rows: checks } = await store().db.execute<{ check: string }>(
        sql`select coalesce(string_agg(with_check, ' '), '') as check from pg_policies where tablename = ${table}`,
      );
      expect(checks[0]?.check, table).toContain(`(${column} = currval(`);
      expect(await ask(`update ${table} set ${column} = ${column} + 1000`), table).toBe(DENIED);
    }
    const grant =
      "insert into permission_grants (id, session_id, epoch, step, tool) values ($1, 'alices', 1, 1, 'bash')";
    expect([DENIED, "55000"]).toContain(await ask(grant, [1_000_000]));
    expect(
      await ask(
        "insert into permission_grants (session_id, epoch, step, tool) values ('alices', 1, 1, 'bash')",
      ),
    ).toBe("done");
    expect(await ask("select setval('permission_grants_id_seq', 1)")).toBe(DENIED);
  });

  it("locks no table, and neither waits nor keeps a transaction open for long", async () => {
    for (const table of tableRights().keys())
      for (const mode of ["row exclusive", "share", "exclusive", "access exclusive"])
        expect(await ask(`do $$ begin lock table ${table} in ${mode} mode; end $$`), `${table} ${mode}`).toBe(
          DENIED,
        );
    const { rows } = await pool.query<{ name: string; setting: string }>(
      "select name, setting from pg_settings where name in ('statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout')",
    );
    expect(rows.map(({ setting }) => Number(setting)).every((ms) => ms > 0)).toBe(true);
    expect(rows).toHaveLength(3);
  });

  it("cannot take all of the server's connections, nor lift that limit itself", async () => {
    const mine = "select rolconnlimit as most from pg_roles where rolname = current_user";
    expect((await pool.query<{ most: number }>(mine)).rows).toEqual([{ most: 50 }]);
    expect(
      await ask("do $$ begin execute format('alter role %I connection limit -1', current_user); end $$"),
    ).toBe(DENIED);
  });

  it("removes its own schedules and no others", async () => {
    const { db } = store();
    await createSchedule(db, { name: "bobs-own", task: "t", config, owner: "bob" });
    await createSchedule(db, { name: "alices-own", task: "t", config, owner: person });
    for (const name of ["bobs-own", "alices-own"])
      await pool.query("select longhaul_remove_schedule($1)", [name]);
    expect(await findSchedule(db, "bobs-own")).toBeDefined();
    expect(await findSchedule(db, "alices-own")).toBeUndefined();
    expect(await removeSchedule(db, "bobs-own")).toBe(true);
    expect(await ask("delete from schedules")).toBe(DENIED);
  });
});
