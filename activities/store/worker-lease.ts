/**
 * A worker's lease: a lock that Postgres frees in the moment its process is gone, however that came. A worker that is
 * stopped or whose event loop stalls keeps it, since its connection stays: that is for Temporal's heartbeats to tell.
 */
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";

/** The class of our locks, among all advisory locks of the database. Any number, the same in every version. */
const LOCK_CLASS = 7_305_143;
const RECONNECT_MS = 200;
const CONNECT_TIMEOUT_MS = 5_000;
/** After Postgres itself began anew, all leases were free for a moment. */
const SETTLING_SECONDS = 10;

export interface LostWorker {
  readonly id: number;
  readonly identity: string;
}

export interface WorkerLease {
  /** Workers without their lease now, apart from this one; none while Postgres is away or has just begun. */
  missing(): Promise<readonly LostWorker[]>;
  /**
   * Does what is to be done for a worker that is gone, by one worker only; the next caller finds it ended.
   * @returns false where it has its lease again, or another is at it
   */
  settle(lost: LostWorker, work: () => Promise<void>): Promise<boolean>;
  /** Says that this worker ends by itself. */
  close(): Promise<void>;
}

/** Takes a lease; where the connection breaks, it is taken again as soon as Postgres answers. */
export async function holdLease(options: {
  readonly url: string;
  readonly identity: string;
  readonly namespace: string;
}): Promise<WorkerLease> {
  const { identity, namespace } = options;
  let id: number | undefined;
  let client: pg.Client | undefined;
  let closed = false;

  const open = async (): Promise<pg.Client> => {
    const next = new pg.Client({
      connectionString: options.url,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      application_name: "longhaul-lease",
      keepAlive: true,
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
      } catch {
        await sleep(RECONNECT_MS);
      }
    }
  };
  client = await open();

  return {
    async missing() {
      if (client === undefined) return [];
      const { rows } = await client.query<LostWorker>(MISSING, [id, namespace, LOCK_CLASS]);
      return rows;
    },
    async settle(gone, work) {
      const mine = client;
      if (mine === undefined) return false;
      const { rows } = await mine.query<{ taken: boolean }>("select pg_try_advisory_lock($1, $2) as taken", [
        LOCK_CLASS,
        gone.id,
      ]);
      if (!rows[0]?.taken) return false;
      try {
        const open = await mine.query("select 1 from workers where id = $1 and ended_at is null", [gone.id]);
        if (open.rowCount === 0) return false;
        await work();
        await mine.query("update workers set ended_at = now() where id = $1", [gone.id]);
        return true;
      } finally {
        await mine.query("select pg_advisory_unlock($1, $2)", [LOCK_CLASS, gone.id]).catch(() => undefined);
      }
    },
    async close() {
      closed = true;
      await client?.query("update workers set ended_at = now() where id = $1", [id]).catch(() => undefined);
      await client?.end().catch(() => undefined);
    },
  };
}

const HOLD_AGAIN = `select pg_try_advisory_lock($2, $1)
  and exists (select 1 from workers where id = $1 and ended_at is null) as held`;

const MISSING = `select id, identity from workers w
  where ended_at is null and id <> $1 and namespace = $2
    and now() - pg_postmaster_start_time() > interval '${SETTLING_SECONDS} s'
    and not exists (select 1 from pg_locks where locktype = 'advisory' and granted and objsubid = 2
      and database = (select oid from pg_database where datname = current_database())
      and classid = $3 and objid = w.id)
  order by id`;
