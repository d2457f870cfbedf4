/** Ends that only one of the two stores knows, as after the restore of an older copy, on real runs in Temporal. */
import { insertMessage } from "../../activities/store/transcript.ts";
import { randomBytes, randomUUID } from "node:crypto";
import { ApplicationFailure } from "@temporalio/common";
import { eq } from "drizzle-orm";
import { expect, it } from "vitest";
import { sessions } from "../../activities/store/schema/index.ts";
import { createSession, findSession } from "../../activities/store/sessions.ts";
import { findSessionRow } from "../../activities/store/reading.ts";
import { cancelIfOver, endedSession } from "../../worker/session-end.ts";
import { runConfig } from "../support/agent-harness.ts";
import { eventually } from "../support/eventually.ts";
import { answered } from "../support/fake-activities.ts";
import { play, playConnections } from "../support/play-loop.ts";
import { startRun } from "../support/start-run.ts";
import { useDatabase } from "../support/test-database.ts";

const database = useDatabase(4);
const LONG_AGO = new Date(Date.now() - 3_600_000);

const taskQueue = `unserved-${randomBytes(4).toString("hex")}`;
const stores = async () => ({
  store: database.store,
  client: (await playConnections()).client,
  taskQueue,
});
const rowOf = async (id: string) => {
  const [row] = await database.store.db.select().from(sessions).where(eq(sessions.id, id));
  return row;
};

async function stored(
  row: Partial<typeof sessions.$inferInsert>,
  id = `end-${randomBytes(5).toString("hex")}`,
) {
  await createSession(database.store, { id, task: "Wait.", config: runConfig(), namespace: "default" });
  await database.store.db
    .update(sessions)
    .set({ updatedAt: LONG_AGO, ...row })
    .where(eq(sessions.id, id));
  return id;
}

it("a session whose run is gone ends and frees its place; a new or a foreign one stays", async () => {
  const given = await stores();
  const gone = await stored({ runId: randomUUID(), status: "waiting" });
  const never = await stored({});
  const elsewhere = await stored({ runId: randomUUID(), namespace: "another" });
  const starting = await stored({ updatedAt: new Date() });
  for (const id of [gone, never]) {
    expect(await endedSession(given, id)).toMatchObject({ id });
    const row = await findSessionRow(database.store.db, id);
    expect(row).toMatchObject({ status: "failed", error: { type: "RunEnded" } });
    expect(JSON.stringify(row?.error)).toContain("gone from Temporal");
  }
  for (const id of [elsewhere, starting]) {
    expect(await endedSession(given, id)).toBeUndefined();
    expect(await rowOf(id)).toMatchObject({ endedAt: null, status: "active" });
  }
});

it("a run whose session has ended by this very run is cancelled, and any other goes on", async () => {
  const given = await stores();
  const ids = await Promise.all([stored({}), stored({}), stored({})]);
  const runs = await Promise.all(ids.map((id) => startRun(given.client, id, taskQueue)));
  const [over, other, active] = ids;
  const ended = { status: "completed", endedAt: LONG_AGO };
  const change = (id = "", row: object = {}) =>
    database.store.db.update(sessions).set(row).where(eq(sessions.id, id));
  await change(over, { ...ended, runId: runs[0]?.firstExecutionRunId });
  await change(other, { ...ended, runId: randomUUID() });
  await change(active, { runId: runs[2]?.firstExecutionRunId });
  expect(await Promise.all(ids.map((id) => cancelIfOver(given, id)))).toEqual([true, false, false]);
  const { events } = await given.client.workflow.getHandle(over ?? "").fetchHistory();
  expect(events?.some((event) => event.workflowExecutionCancelRequestedEventAttributes)).toBe(true);
  expect(await rowOf(over ?? "")).toMatchObject({ status: "completed" });
  await Promise.all(runs.map((run) => run.terminate("the test is over")));
});

it("a run that could not store its end keeps the outcome that it had", async () => {
  const given = await stores();
  const closeSession = async () => {
    throw ApplicationFailure.nonRetryable("There was no database for a day.");
  };
  const outcomes = [
    { steps: [answered()], is: { status: "completed", error: null } },
    {
      steps: [answered([], { finish: "content-filter" })],
      is: {
        status: "failed",
        error: expect.objectContaining({ type: expect.not.stringContaining("RunEnded") }),
      },
    },
  ] as const;
  for (const { steps, is } of outcomes) {
    const { handle, taskQueue: played } = await play({ steps, activities: { closeSession } });
    await stored({}, handle.workflowId);
    const message = { role: "assistant", content: [{ type: "text", text: "It is done." }] } as const;
    const place = { epoch: 1, step: 1, slot: "assistant", kind: "answer", tokens: 1 } as const;
    await insertMessage(database.store.db, handle.workflowId, 10, { ...place, message });
    const ended = await eventually("the run is over", () =>
      endedSession({ ...given, taskQueue: played }, handle.workflowId),
    );
    expect(ended.id).toBe(handle.workflowId);
    expect(await findSession(database.store.db, handle.workflowId)).toMatchObject({ status: is.status });
    expect(await rowOf(handle.workflowId)).toMatchObject(is);
  }
});
