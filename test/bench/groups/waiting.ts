/** What waiting costs: of a step whose model streams for seconds while no one watches, and of a worker with nothing to do. */
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { createDatabase } from "../../support/services.ts";
import { startWorkerProcess } from "../../support/worker-process.ts";
import { ownCpuMs, perUnit } from "../stand/processes.ts";
import type { BenchSession, Stand } from "../stand/stand.ts";
import { sum } from "../stats.ts";
import { atMost, type Figure, type Goal } from "../table.ts";
import type { Scale } from "./group.ts";

/** Steps of each session that count; the one before them is whole too, and does not. */
const STEPS = 2;

/** All of it since the machine began to count; or a step's share. */
interface Counters {
  readonly commits: number;
  readonly walBytes: number;
  /** Of it, whole pages that a checkpoint made it write again: the fewer, the more sessions share them. */
  readonly walPages: number;
  readonly workerCpuMs: number;
  readonly serverCpuMs: number;
  readonly heartbeats: number;
  /** What Temporal wrote for these sessions, without heartbeats. */
  readonly events: number;
}

export async function measureWaiting(stand: Stand, scale: Scale): Promise<Figure[]> {
  const figures: Figure[] = [];
  const idleMs = await idleCpuMs(stand);
  for (const seconds of scale.waitingSeconds)
    for (const sessions of scale.waitingSessions)
      figures.push(...figuresOf(seconds, sessions, await streaming(stand, seconds, sessions), idleMs));
  return [...figures, await idleWorker(stand)];
}

/** Processor time that the worker takes in a second in which nothing runs, in ms. */
async function idleCpuMs({ agent, say }: Stand): Promise<number> {
  say("the worker at rest");
  const { cpuMs } = await agent.usage(true);
  await sleep(IDLE_SECONDS * 1_000);
  return ((await agent.usage()).cpuMs - cpuMs) / IDLE_SECONDS;
}

const IDLE_SECONDS = 20;
/** Others see what an idle connection did before at most this late. Source: PGSTAT_IDLE_INTERVAL in Postgres' pgstat.c. */
const STATISTICS_MS = 10_000;

/** In its own database and without vacuum, because what else commits there is counted too. */
async function idleWorker({ say, superuserUrl, environment }: Stand): Promise<Figure> {
  say("an idle worker");
  const DATABASE_URL = await createDatabase(superuserUrl, "bench_idle");
  const outside = new pg.Client({ connectionString: superuserUrl });
  await outside.connect();
  const vacuum = async (value: "off" | "default") => {
    await outside.query(`alter system set autovacuum = ${value}`);
    await outside.query("select pg_reload_conf()");
  };
  await vacuum("off");
  const worker = await startWorkerProcess({
    ...environment,
    DATABASE_URL,
    LONGHAUL_TASK_QUEUE: "bench-idle",
  });
  const commits = async () => {
    await sleep(STATISTICS_MS);
    const { rows } = await outside.query<{ commits: string }>(
      "select xact_commit as commits from pg_stat_database where datname = 'bench_idle'",
    );
    return Number(rows[0]?.commits);
  };
  try {
    const before = await commits();
    await sleep(IDLE_SECONDS * 1_000 - STATISTICS_MS);
    const value = ((await commits()) - before) / (IDLE_SECONDS / 10);
    return { name: "idle worker: Postgres commits in 10 s", value, unit: "", n: 1, goal: atMost(5) };
  } finally {
    await worker.terminate();
    await vacuum("default");
    await outside.end();
  }
}

async function streaming(stand: Stand, seconds: number, count: number): Promise<Counters> {
  stand.say(`${count} x ${STEPS} steps of ${seconds} s`);
  // More than are counted: those that are ahead are not to end meanwhile.
  const plan = { steps: STEPS + 3, calls: 1, tool: "probe", streamMs: seconds * 1_000 } as const;
  const sessions = await Promise.all(Array.from({ length: count }, () => stand.start(plan, { bulk: true })));
  const all = (step: number) => Promise.all(sessions.map(({ id }) => stand.model.nth(id, step)));
  await all(2);
  // What earlier figures left is not collected at this one's expense.
  await stand.agent.usage(true);
  const before = await countersOf(stand, sessions);
  await all(2 + STEPS);
  const after = await countersOf(stand, sessions);
  await Promise.all(sessions.map(({ handle }) => handle.cancel()));
  await Promise.all(sessions.map(({ handle }) => handle.result().catch(() => undefined)));
  return perUnit(before, after, count * STEPS);
}

async function countersOf(stand: Stand, sessions: readonly BenchSession[]): Promise<Counters> {
  const [{ cpuMs }, commits, { walBytes, walPages }, heartbeats, events] = await Promise.all([
    stand.agent.usage(),
    stand.agent.transactions(),
    written(stand),
    stand.agent.heartbeats(),
    Promise.all(sessions.map(writtenEvents)),
  ]);
  const serverCpuMs = ownCpuMs(stand.temporalPid);
  return { commits, walBytes, walPages, workerCpuMs: cpuMs, serverCpuMs, heartbeats, events: sum(events) };
}

async function written({ store }: Stand): Promise<Pick<Counters, "walBytes" | "walPages">> {
  const { rows } = await store.pool.query<{ wal: string; pages: string }>(
    "select pg_current_wal_insert_lsn() - '0/0' as wal, wal_fpi as pages from pg_stat_wal",
  );
  const [row] = rows;
  return { walBytes: Number(row?.wal), walPages: Number(row?.pages) };
}

/** What is scheduled is written together with what scheduled it. */
async function writtenEvents({ handle }: BenchSession): Promise<number> {
  const { events } = await handle.fetchHistory();
  return (events ?? []).filter(
    (event) => !event.activityTaskScheduledEventAttributes && !event.workflowTaskScheduledEventAttributes,
  ).length;
}

function figuresOf(seconds: number, sessions: number, counted: Counters, idleMs: number): Figure[] {
  const figure = (name: string, value: number, unit: string, goal?: Goal, note?: string): Figure => ({
    name: `step of ${seconds} s, ${sessions} at once, unwatched: ${name}`,
    value,
    unit,
    n: sessions * STEPS,
    // Of ten seconds: longer ones are there for comparison.
    goal: seconds === 10 ? goal : undefined,
    note,
  });
  // A worker polls and checks its lease whether or not a session runs; sessions at once share that.
  const restMs = (idleMs * seconds) / sessions;
  const { commits, walBytes, walPages, workerCpuMs, serverCpuMs, heartbeats, events } = counted;
  return [
    figure("Postgres commits", commits, "", atMost(20)),
    figure("WAL", walBytes / 1_024, "KB", atMost(15), `${walPages.toFixed(2)} whole pages`),
    figure("worker CPU", workerCpuMs - restMs, "ms", atMost(80), `above ${restMs.toFixed(1)} at rest`),
    figure("Temporal server CPU", serverCpuMs, "ms", atMost(70)),
    figure("persisted Temporal actions", heartbeats + events, "", atMost(12), `${heartbeats} heartbeats`),
  ];
}
