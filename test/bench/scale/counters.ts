/** What was spent until now: processor time of processes, commits, log of changes. */
import { onServer } from "../../support/services.ts";
import type { WorkerProcess } from "../../support/worker-process.ts";
import { machineCpuMs, ownCpuMs, treeCpuMs } from "../stand/processes.ts";
import type { ScaleStand } from "./stand.ts";

export type Spent = Awaited<ReturnType<typeof spentUntilNow>>;

export async function spentUntilNow(
  { postgres, temporal, model }: ScaleStand,
  workers: readonly WorkerProcess[],
) {
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
    /** Of the model's double. */
    modelCpuMs,
    /** The whole machine's, whatever used it. */
    machineCpuMs: machineCpuMs(),
    commits: ours.commits,
    walBytes: ours.walBytes,
    temporalCommits: theirs.commits,
    temporalWalBytes: theirs.walBytes,
  };
}

/** Of a whole server. A connection at rest reports what it did after 10 s. */
async function databaseWork(url: string): Promise<{ readonly commits: number; readonly walBytes: number }> {
  const { rows } = await onServer(url, (client) =>
    client.query<{ commits: string; wal: string }>(
      `select (select sum(xact_commit) from pg_stat_database) as commits,
        pg_current_wal_insert_lsn() - '0/0' as wal`,
    ),
  );
  return { commits: Number(rows[0]?.commits), walBytes: Number(rows[0]?.wal) };
}
