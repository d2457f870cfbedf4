/**
 * A worker's lease: a lock that Postgres frees in the moment its process is gone, however that came. A worker that is
 * stopped or whose event loop stalls keeps it, since its connection stays; but nothing comes over that connection any more,
 * where a live worker asks every few seconds.
 */
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";

/** The class of our locks, among all advisory locks of the database. Any number, the same in every version. */
const LOCK_CLASS = 7_305_143;
const RECONNECT_MS = 200;
const CONNECT_TIMEOUT_MS = 5_000;
/**
 * After Postgres restarted, or another server took its place, all leases were free for a moment. The second case shows only in
 * this worker's own lost connection: a standby that was promoted may have been up for weeks.
 */
const SETTLING_MS = 10_000;
/** Advisory locks of the workers that free a frozen one's work: one at a time. */
const FREEING_CLASS = LOCK_CLASS + 1;
/**
 * A machine that is cut off closes no connection: Postgres asks after 5 s without a word, and frees the lease some 6 s later
 * instead of two hours. Source: ours; a live worker's connection is never idle that long.
 */
const KEEPALIVE = "-c tcp_keepalives_idle=5 -c tcp_keepalives_interval=2 -c tcp_keepalives_count=3";

export interface LostWorker {
  readonly id: number;
  readonly identity: string;
  /** It has its lease, and has said nothing for longer than the heartbeat timeout. It may come back. */
  readonly frozen: boolean;
}

export interface WorkerLease {
  /** Workers without their lease now, or frozen, apart from this one; none while Postgres is away or has just come back. */
  missing(): Promise<readonly LostWorker[]>;
  /**
   * Does what must be done for a lost worker, by one worker at a time. One that is gone is ended then: the next caller
   * finds it so.
   * @returns false if it has its lease again, or another is at it
   */
  settle(lost: LostWorker, work: () => Promise<void>): Promise<boolean>;
  /** Says that this worker ends by itself. */
  close(): Promise<void>;
}

/** Takes a lease; if the connection breaks, it is taken again as soon as Postgres answers. */
export async function holdLease(options: {
  readonly url: string;
  readonly identity: string;
  readonly namespace: string;
  /** How long a worker may say nothing before it counts as frozen, in ms: no shorter than the heartbeat timeout. */
  readonly frozenMs: number;
  /** Default 10 s. */
  readonly settlingMs?: number;
}): Promise<WorkerLease> {
  const { identity, namespace, frozenMs, settlingMs = SETTLING_MS } = options;
  let settledAt = 0;
  let id: number | undefined;
  let client: pg.Client | undefined;
  let closed = false;

  const open = async (): Promise<pg.Client> => {
    const next = new pg.Client({
      connectionString: options.url,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      application_name: "longhaul-lease",
      keepAlive: true,
      options: KEEPALIVE,
    });
    next.on("error", () => lost(next));
    next.on("end", () => lost(next));
    await next.connect();
    try {
      const held = id === undefined ? undefined : await next.query(HOLD_AGAIN, [id, LOCK_CLASS]);
      // Others took it for gone in the meantime: from here on it is another worker.
      if (!held?.rows[0]?.held) {
        const { rows } = await next.query<{ id: number }>(
          "insert into workers (identity, namespace) values ($1, $2) returning id",
          [identity, namespace],
        );
        id = rows[0]?.id ?? 0;
        await next.query("select pg_advisory_lock($1, $2)", [LOCK_CLASS, id]);
      }
    } catch (error) {
      await next.end().catch(() => undefined);
      throw error;
    }
    return next;
  };
  const lost = (gone: pg.Client) => {
    if (client !== gone || closed) return;
    client = undefined;
    void reopen();
  };
  const reopen = async () => {
    while (!closed && client === undefined) {
      try {
        client = await open();
        settledAt = performance.now() + settlingMs;
      } catch {
        await sleep(RECONNECT_MS);
      }
    }
  };
  client = await open();
  // Also while this worker frees another's work, however long that takes.
  const speaking = setInterval(() => void client?.query("select 1").catch(() => undefined), frozenMs / 3);

  return {
    async missing() {
      if (client === undefined) return [];
      speaking.refresh();
      const { rows } = await client.query<LostWorker>(MISSING, [
        id,
        namespace,
        LOCK_CLASS,
        frozenMs,
        settlingMs,
      ]);
      return performance.now() < settledAt ? [] : rows;
    },
    async settle(gone, work) {
      const mine = client;
      if (mine === undefined) return false;
      const lock = [gone.frozen ? FREEING_CLASS : LOCK_CLASS, gone.id];
      const { rows } = await mine.query<{ taken: boolean }>(
        "select pg_try_advisory_lock($1, $2) as taken",
        lock,
      );
      if (!rows[0]?.taken) return false;
      try {
        const open = await mine.query("select 1 from workers where id = $1 and ended_at is null", [gone.id]);
        if (open.rowCount === 0) return false;
        await work();
        if (!gone.frozen) await mine.query("update workers set ended_at = now() where id = $1", [gone.id]);
        return true;
      } finally {
        await mine.query("select pg_advisory_unlock($1, $2)", lock).catch(() => undefined);
      }
    },
    async close() {
      closed = true;
      clearInterval(speaking);
      await client?.query("update workers set ended_at = now() where id = $1", [id]).catch(() => undefined);
      await client?.end().catch(() => undefined);
    },
  };
}

const HOLD_AGAIN = `select pg_try_advisory_lock($2, $1)
  and exists (select 1 from workers where id = $1 and ended_at is null) as held`;

const MISSING = `select w.id, w.identity, lease.pid is not null as frozen from workers w
  left join pg_locks lease on lease.locktype = 'advisory' and lease.granted and lease.objsubid = 2
    and lease.database = (select oid from pg_database where datname = current_database())
    and lease.classid = $3 and lease.objid = w.id
  left join pg_stat_activity said on said.pid = lease.pid
  where w.ended_at is null and w.id <> $1 and w.namespace = $2
    and clock_timestamp() - pg_postmaster_start_time() > $5 * interval '1 ms'
    and (lease.pid is null or clock_timestamp() - said.state_change > $4 * interval '1 ms')
  order by w.id`;
