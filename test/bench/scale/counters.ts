/** What was spent until now: processor time of processes, commits, log of changes, memory. Linux only. */
import { readdirSync, readFileSync } from "node:fs";
import pg from "pg";
import type { WorkerProcess } from "../../support/worker-process.ts";
import type { ScaleStand } from "./stand.ts";

export interface Spent {
  readonly workersCpuMs: number;
  readonly temporalCpuMs: number;
  readonly postgresCpuMs: number;
  readonly temporalPostgresCpuMs: number;
  /** Of the model's double. */
  readonly modelCpuMs: number;
  /** The whole machine's, whatever used it. */
  readonly machineCpuMs: number;
  readonly commits: number;
  readonly walBytes: number;
  readonly temporalCommits: number;
  readonly temporalWalBytes: number;
}

/** Source: Linux, for every machine that it runs on. */
const MS_PER_TICK = 10;

export async function spentUntilNow(
  { postgres, temporal, model }: ScaleStand,
  workers: readonly WorkerProcess[],
): Promise<Spent> {
  const [ours, theirs, modelCpuMs] = await Promise.all([
    databaseWork(postgres.url),
    databaseWork(temporal.postgres.url),
    model.ask.cpuMs(),
  ]);
  return {
    workersCpuMs: workers.reduce((sum, { pid }) => sum + ownCpuMs(pid), 0),
    temporalCpuMs: ownCpuMs(temporal.pid()),
    postgresCpuMs: treeCpuMs(postgres.pid()),
    temporalPostgresCpuMs: treeCpuMs(temporal.postgres.pid()),
    modelCpuMs,
    machineCpuMs: machineCpuMs(),
    commits: ours.commits,
    walBytes: ours.walBytes,
    temporalCommits: theirs.commits,
    temporalWalBytes: theirs.walBytes,
  };
}

/** Of a whole server. A connection that rests tells what it did after 10 s. */
async function databaseWork(url: string): Promise<{ readonly commits: number; readonly walBytes: number }> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query<{ commits: string; wal: string }>(
      `select (select sum(xact_commit) from pg_stat_database) as commits,
        pg_current_wal_insert_lsn() - '0/0' as wal`,
    );
    return { commits: Number(rows[0]?.commits), walBytes: Number(rows[0]?.wal) };
  } finally {
    await client.end();
  }
}

/** Resident, in bytes; 0 if it is gone. */
export function residentBytes(pid: number): number {
  const kb = /VmRSS:\s+(\d+)/.exec(read(`/proc/${pid}/status`))?.[1];
  return Number(kb ?? 0) * 1_024;
}

/** What new programs could still have, in bytes. */
export function availableBytes(): number {
  return Number(/MemAvailable:\s+(\d+)/.exec(read("/proc/meminfo"))?.[1] ?? 0) * 1_024;
}

function ownCpuMs(pid: number): number {
  const fields = statOf(pid);
  return (Number(fields[11] ?? 0) + Number(fields[12] ?? 0)) * MS_PER_TICK;
}

/** With those of its children that ended, and those that live. */
function treeCpuMs(pid: number): number {
  const fields = statOf(pid);
  const ended = (Number(fields[13] ?? 0) + Number(fields[14] ?? 0)) * MS_PER_TICK;
  return ownCpuMs(pid) + ended + childrenOf(pid).reduce((sum, child) => sum + ownCpuMs(child), 0);
}

function childrenOf(parent: number): number[] {
  const pids = readdirSync("/proc").map(Number).filter(Number.isInteger);
  return pids.filter((pid) => Number(statOf(pid)[1]) === parent);
}

/** Of `cpu user nice system idle iowait irq softirq steal`, all but the third and fourth of the last six. */
function machineCpuMs(): number {
  const [, user, nice, system, , , irq, softirq] = (read("/proc/stat").split("\n")[0] ?? "")
    .split(/\s+/)
    .map(Number);
  const ticks = [user, nice, system, irq, softirq].reduce<number>((sum, one) => sum + (one ?? 0), 0);
  return ticks * MS_PER_TICK;
}

/** Fields from the state on: the name before it may hold anything. */
function statOf(pid: number): string[] {
  return read(`/proc/${pid}/stat`).split(") ").at(-1)?.split(" ") ?? [];
}

function read(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    // It ended in this moment.
    return "";
  }
}
