/** Queries over many sessions: as many statements for 200 as for 2, with indexes where there are 10,000. */
import { randomBytes } from "node:crypto";
import { pino } from "pino";
import { expect, it, onTestFinished, vi } from "vitest";
import { sql } from "drizzle-orm";
import { sessionSizes } from "../../activities/context/context-size.ts";
import type { SandboxHost } from "../../activities/sandbox/sandbox-host.ts";
import { listSessions, readFigures } from "../../activities/store/reading.ts";
import { Suspects } from "../../activities/runtime/lost-attempts.ts";
import { CountedSaves } from "../../activities/runtime/counted-saves.ts";
import { recordSandbox, sandboxOwners } from "../../activities/store/sandboxes.ts";
import { activeSessionIds, createSession } from "../../activities/store/sessions.ts";
import { listedAsRunning } from "../../temporal/runs.ts";
import { reapSandboxes } from "../../worker/reaper.ts";
import { runConfig } from "../support/agent-harness.ts";
import { eventually } from "../support/eventually.ts";
import { useDatabase } from "../support/test-database.ts";
import { startRun } from "../support/start-run.ts";
import { playConnections } from "../support/play-loop.ts";

const database = useDatabase(4);
const store = () => database.store;
const { client } = await playConnections();

/** Sessions with a run that no worker serves. */
async function startSessions(count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, () => `many-${randomBytes(5).toString("hex")}`);
  const taskQueue = `unserved-${randomBytes(4).toString("hex")}`;
  for (const id of ids) {
    await createSession(store(), { id, task: "Wait.", config: runConfig() });
    const place = {
      host: "here",
      volume: `volume of ${id}`,
      container: "c",
      boot: "b",
      taskQueue: undefined,
    };
    await recordSandbox(store().db, id, place);
    await startRun(client, id, taskQueue);
  }
  await eventually("Temporal lists them all", async () => {
    const running = await listedAsRunning(client);
    return ids.every((id) => running.has(id));
  });
  return ids;
}

/** The statements that `work` sends outside transactions, and how many connections it takes for them. */
async function statementsOf(body: () => Promise<unknown>) {
  const queries = vi.spyOn(store().pool, "query");
  const connects = vi.spyOn(store().pool, "connect");
  try {
    await body();
    const asked = queries.mock.calls as unknown as [{ text: string }, unknown[]?][];
    return {
      texts: asked.map(([query, values]) => ({ text: query.text, values: values ?? [] })),
      // Each query of a pool takes one too.
      count: Math.max(queries.mock.calls.length, connects.mock.calls.length),
    };
  } finally {
    queries.mockRestore();
    connects.mockRestore();
  }
}

/** It has these sessions' sandboxes, and each has its files. */
function hostOf(ids: readonly string[]): SandboxHost {
  return {
    sessions: async () => [...ids],
    volume: async (id: string) => `volume of ${id}`,
    removeUnused: async () => [],
  } as unknown as SandboxHost;
}

it("the reaper, the list and its figures need as many statements for 200 sessions as for 2", async () => {
  const ids = await startSessions(200);
  const round = (some: readonly string[]) =>
    reapSandboxes({
      host: hostOf(some),
      store: store(),
      countedSaves: new CountedSaves(store().db, new Suspects()),
      client,
      taskQueue: "unserved",
      logger: pino({ level: "silent" }),
    });
  const describe = vi.spyOn(client.connection.workflowService, "describeWorkflowExecution");
  const counts = async (some: readonly string[]) => ({
    reaper: (await statementsOf(() => round(some))).count,
    list: (await statementsOf(() => listSessions(store().db, { limit: some.length }))).count,
    figures: (await statementsOf(() => readFigures(store().db, some))).count,
    sizes: (await statementsOf(() => sessionSizes(store().db, some))).count,
  });
  const few = await counts(ids.slice(0, 2));
  expect(await counts(ids)).toEqual(few);
  expect(few).toEqual({ reaper: 1, list: 1, figures: 8, sizes: 2 });
  expect(describe).not.toHaveBeenCalled();
  expect((await sessionSizes(store().db, ids)).size).toBe(200);
  await Promise.all(ids.map((id) => client.workflow.getHandle(id).terminate("The test is over.")));
}, 120_000);

/** Tables that grow with every session: none of them may be scanned for a few. */
const LARGE = [
  "sessions",
  "events",
  "stored_messages",
  "model_calls",
  "sandboxes",
  "compaction_events",
  "cursors",
];

it("with 10,000 sessions in the database, indexes answer each of these queries", async () => {
  const { db, pool } = store();
  await seed(10_000);
  const ids = Array.from({ length: 50 }, (_, index) => `seeded-${9_900 + index}`);
  const { texts } = await statementsOf(async () => {
    await activeSessionIds(db);
    await sandboxOwners(db, ids);
    await listSessions(db, { limit: 50 });
    await listSessions(db, { limit: 50, owner: "alice" });
    await readFigures(db, ids);
    await sessionSizes(db, ids);
  });
  expect(texts.length).toBeGreaterThanOrEqual(11);
  const asking = await pool.connect();
  onTestFinished(() => asking.release(true));
  // A remaining scan has no index for it, or is of short rows, where it may be faster.
  await asking.query("set enable_seqscan = off");
  for (const { text, values } of texts) {
    const { rows } = await asking.query<{ "QUERY PLAN": string }>(`explain ${text}`, values);
    const plan = rows.map((row) => row["QUERY PLAN"]).join("\n");
    const scanned = LARGE.filter((table) => new RegExp(`Seq Scan on ${table}\\b`).test(plan));
    expect(scanned, `${text}\n${plan}`).toEqual([]);
  }
}, 120_000);

/** All ended but the last 100; each with three steps. */
async function seed(count: number): Promise<void> {
  const { db } = store();
  const config = JSON.stringify(runConfig());
  const all = sql`generate_series(0, ${count - 1}::int) as n`;
  const steps = sql`generate_series(1, 3) as step`;
  await db.execute(sql`insert into sessions (id, task, config, status, ended_at, created_at, owner)
    select 'seeded-' || n, 'Wait.', ${config}::json, case when n < ${count - 100} then 'completed' else 'active' end,
      case when n < ${count - 100} then now() end, now() - (${count} - n) * interval '1 minute',
      case when n % 10 = 0 then 'alice' else 'bob' end from ${all}`);
  await db.execute(sql`insert into cursors (session_id, message_sequence, event_seq)
    select 'seeded-' || n, 5, 9 from ${all}`);
  await db.execute(sql`insert into sandboxes (session_id, host, volume, container, boot)
    select 'seeded-' || n, 'here', 'v', 'c', 'b' from ${all}`);
  await db.execute(sql`insert into events (session_id, seq, epoch, step, attempt, type, data)
    select 'seeded-' || n, step * 3, 1, step, 1, 'step:started', '{}' from ${all}, ${steps}`);
  await db.execute(sql`insert into model_calls (session_id, epoch, step, attempt, purpose, model, status,
      estimated_input, estimate_pure, input_tokens)
    select 'seeded-' || n, 1, step, 1, 'step', 'm', 'kept', 10, true, 10 from ${all}, ${steps}`);
  await db.execute(sql`insert into stored_messages
      (session_id, epoch, step, slot, sequence, position, role, kind, content, token_count)
    select 'seeded-' || n, 1, step, 'assistant', step, step, 'assistant', 'assistant',
      '[{"type":"text","text":"Yes."}]', 2 from ${all}, ${steps}`);
  await db.execute(sql`analyze`);
}
