/** Two stores that disagree, as after one was restored from a backup: real Postgres, real Temporal, no worker. */
import { randomUUID } from "node:crypto";
import { Connection } from "@temporalio/client";
import { eq } from "drizzle-orm";
import { expect, inject, it, onTestFinished } from "vitest";
import { openStore } from "../../activities/store/db.ts";
import { sessions } from "../../activities/store/schema/index.ts";
import { createSession } from "../../activities/store/sessions.ts";
import { openServices } from "../../client/connect/connection.ts";
import { locksFinding, storesFinding } from "../../client/connect/stores-check.ts";
import { temporalClient } from "../../temporal/temporal-client.ts";
import { WORKFLOW_TYPE } from "../../workflows/messages.ts";
import { directConfig } from "../support/direct-agent.ts";
import { eventually } from "../support/eventually.ts";
import { useDatabase } from "../support/test-database.ts";

const database = useDatabase();

it("each difference is named with what to do, and agreeing sessions are counted", async () => {
  const queue = `stores-${randomUUID()}`;
  const connection = await Connection.connect({ address: inject("temporalAddress") });
  onTestFinished(() => connection.close());
  const client = temporalClient({ connection, namespace: "default" }, []);
  const store = openStore({ url: database.url, maxConnections: 2 });
  onTestFinished(() => store.close());
  const services = await openServices({
    databaseUrl: database.url,
    temporalAddress: inject("temporalAddress"),
    taskQueue: queue,
    uiUrl: undefined,
    dockerHost: undefined,
    sandboxImage: undefined,
    rehearsalUrl: undefined,
    environment: {},
  });
  onTestFinished(() => services.close());
  const started = async (id: string) => {
    const options = { workflowId: id, taskQueue: queue, args: [{}] };
    const { firstExecutionRunId: runId } = await client.workflow.start(WORKFLOW_TYPE, options);
    onTestFinished(
      async () =>
        void (await client.workflow
          .getHandle(id)
          .terminate()
          .catch(() => undefined)),
    );
    return runId;
  };
  const stored = async (id: string, changes: Partial<typeof sessions.$inferInsert> = {}) => {
    await createSession(store, { id, task: "Go.", config: directConfig({}) });
    await store.db
      .update(sessions)
      .set({ createdAt: new Date("2026-01-01"), ...changes })
      .where(eq(sessions.id, id));
  };
  const id = (what: string) => `${what}-${queue}`;
  await stored(id("sound"), { runId: await started(id("sound")) });
  const found = async () => storesFinding(services);
  await eventually("Temporal lists the run", async () => {
    const listed = client.workflow.list({ query: `WorkflowId = '${id("sound")}'` });
    return (await listed[Symbol.asyncIterator]().next()).done !== true;
  });
  expect(await found()).toEqual({ ok: true, found: "agree on the open session" });

  await stored(id("lost"), { runId: "gone" });
  await stored(id("never"), { runId: null });
  await started(id("unknown"));
  const closed = await started(id("closed"));
  await client.workflow.getHandle(id("closed")).terminate();
  await stored(id("closed"), { runId: closed });
  const endedBy = await started(id("ended"));
  await stored(id("ended"), { runId: endedBy, status: "completed", endedAt: new Date() });

  const {
    ok,
    warning,
    fix = "",
  } = await eventually("all are listed", async () => {
    const finding = await found();
    return finding.found.startsWith("5 differences") && finding;
  });
  expect({ ok, warning }).toEqual({ ok: true, warning: true });
  for (const [which, words] of [
    ["lost", /no longer has its run\. Go on in a new run: longhaul say lost-/],
    ["never", /is stored, and Temporal has no run of it\. Start it with a message/],
    ["unknown", /Postgres has no session of this name\. Restore a newer backup/],
    ["closed", /is open, and its run ended \(terminated\)\. A worker ends it/],
    ["ended", /the run that ended it is open in Temporal\. Temporal is older than Postgres/],
  ] as const)
    expect(fix.split("\n").find((line) => line.startsWith(`${id(which)}:`))).toMatch(words);
});

it("a database without our tables is told as that, with what to do", async () => {
  const services = await openServices({
    databaseUrl: `${database.url}?options=-c%20search_path%3Dnowhere`,
    temporalAddress: inject("temporalAddress"),
    taskQueue: `stores-${randomUUID()}`,
    uiUrl: undefined,
    dockerHost: undefined,
    sandboxImage: undefined,
    rehearsalUrl: undefined,
    environment: {},
  });
  onTestFinished(() => services.close());
  const { found, fix } = await storesFinding(services);
  expect(found).toBe(
    "not compared: this database does not have Longhaul's tables, or those of another version",
  );
  expect(fix).toMatch(/^The next worker makes them: npm start/);
});

it("a connection that keeps others waiting for a lock is named, with how to end it", async () => {
  const store = openStore({ url: database.url, maxConnections: 4 });
  onTestFinished(() => store.close());
  const [holder, waiter] = [await store.pool.connect(), await store.pool.connect()];
  const { rows } = await holder.query<{ pid: number }>("select pg_backend_pid() as pid");
  const pid = rows[0]?.pid ?? 0;
  const lock = "select pg_advisory_lock(hashtext('longhaul'), hashtext('retention'))";
  await holder.query(lock);
  const waits = waiter.query(lock);
  const named = async () =>
    (await locksFinding(store, 0)).fix?.includes(`pg_terminate_backend(${pid})`) === true;
  await eventually("the lock's holder is named", named);
  // Not one that has only just begun to wait.
  expect((await locksFinding(store, 3_600_000)).fix).toBeUndefined();
  await holder.query("select pg_advisory_unlock_all()");
  await waits;
  await waiter.query("select pg_advisory_unlock_all()");
  for (const client of [holder, waiter]) client.release();
});
