/** A worker that still runs when a deploy has changed the tables, and the one that replaces it. */
import { existsSync } from "node:fs";
import { expect, it } from "vitest";
import { eventually } from "../support/eventually.ts";
import { startKillableSession } from "../support/killable-session.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { useDatabase } from "../support/test-database.ts";

const database = useDatabase(10);

it("accepts no more work, says so, and its sessions wait for a newer worker instead of failing", async () => {
  const { pool } = database.store;
  const script = scriptedModel().calls("bash", { command: "true" }).says("Done.");
  const session = await startKillableSession(database, script);
  const old = await session.startWorker();
  await pool.query("insert into longhaul_migrations (hash, created_at) values ('newer', 9000000000000)");
  await pool.query("alter table stored_messages rename column meta to about");
  await eventually("the old worker says so", () => /older than the database/.test(old.log()), 60_000);
  await eventually("it is not ready any more", () => !existsSync(old.readyFile), 60_000);
  expect(old.alive).toBe(true);
  const { raw } = await session.handle.describe();
  const [waiting] = raw.pendingActivities ?? [];
  expect(waiting?.lastFailure).toMatchObject({
    message: expect.stringContaining("waits for a newer worker"),
    applicationFailureInfo: { type: "WorkerOutdated" },
  });

  // A newer worker knows the tables.
  await pool.query("alter table stored_messages rename column about to meta");
  const newer = await session.startWorker();
  expect(await session.handle.result()).toMatchObject({ status: "completed" });
  const { events } = await session.handle.fetchHistory();
  const byOld = (events ?? []).filter(({ activityTaskStartedEventAttributes: started }) =>
    started?.identity?.startsWith(`${old.pid}.`),
  );
  // Sessions that it had begun to serve before the tables changed.
  expect(byOld.length).toBeLessThanOrEqual(2);
  expect(await old.terminate()).toBe(0);
  expect(newer.alive).toBe(true);
});
