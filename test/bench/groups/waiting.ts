/** What waiting costs: of a step whose model streams for seconds while no one watches, and of a worker with nothing to do. */
import { setTimeout as sleep } from "node:timers/promises";
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
  for (const seconds of scale.waitingSeconds)
    for (const sessions of scale.waitingSessions)
      figures.push(...figuresOf(seconds, sessions, await streaming(stand, seconds, sessions)));
  return [...figures, await idleWorker(stand)];
}

const IDLE_SECONDS = 20;
/** A connection's statistics reach the others at most so late. Source: Postgres' documentation, the cumulative statistics system. */
const STATISTICS_MS = 1_000;

async function idleWorker(stand: Stand): Promise<Figure> {
  stand.say("an idle worker");
  const worker = await startWorkerProcess({ ...stand.environment, LONGHAUL_TASK_QUEUE: "bench-idle" });
  const commits = async () => {
    await sleep(STATISTICS_MS);
    const { rows } = await stand.store.pool.query<{ commits: string }>(
      "select xact_commit as commits from pg_stat_database where datname = current_database()",
    );
    return Number(rows[0]?.commits);
  };
  try {
    const before = await commits();
    await sleep(IDLE_SECONDS * 1_000);
    // The first reading's own came after it.
    const value = ((await commits()) - before - 1) / (IDLE_SECONDS / 10);
    return { name: "idle worker: Postgres commits in 10 s", value, unit: "", n: 1, goal: atMost(5) };
  } finally {
    await worker.terminate();
  }
}

async function streaming(stand: Stand, seconds: number, count: number): Promise<Counters> {
  stand.say(`${count} x ${STEPS} steps of ${seconds} s`);
  // More than are counted: those that are ahead are not to end meanwhile.
  const plan = { steps: STEPS + 3, calls: 1, tool: "probe", streamMs: seconds * 1_000 } as const;
  const sessions = await Promise.all(Array.from({ length: count }, () => stand.start(plan, { bulk: true })));
  const all = (step: number) => Promise.all(sessions.map(({ id }) => stand.model.nth(id, step)));
  await all(2);
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

function figuresOf(seconds: number, sessions: number, counted: Counters): Figure[] {
  const figure = (name: string, value: number, unit: string, goal?: Goal, note?: string): Figure => ({
    name: `step of ${seconds} s, ${sessions} at once, unwatched: ${name}`,
    value,
    unit,
    n: sessions * STEPS,
    // Of ten seconds: longer ones are there for comparison.
    goal: seconds === 10 ? goal : undefined,
    note,
  });
  const { commits, walBytes, walPages, workerCpuMs, serverCpuMs, heartbeats, events } = counted;
  return [
    figure("Postgres commits", commits, "", atMost(20)),
    figure("WAL", walBytes / 1_024, "KB", atMost(15), `${walPages} whole pages`),
    figure("worker CPU", workerCpuMs, "ms", atMost(80)),
    figure("Temporal server CPU", serverCpuMs, "ms", atMost(70)),
    figure("persisted Temporal actions", heartbeats + events, "", atMost(12), `${heartbeats} heartbeats`),
  ];
}
