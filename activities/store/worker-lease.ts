/**
 * A worker's lease: a lock that Postgres frees the moment the worker's process ends, for whatever reason. A worker that is
 * stopped or whose event loop stalls keeps it, since its connection stays open; but that connection becomes silent, whereas
 * a live worker sends a query every few seconds.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { and, eq, isNull, sql } from "drizzle-orm";
import pg from "pg";
import type { Service } from "../process/service.ts";
import { cutChars } from "../text/cut.ts";
import { readPostgresAddress } from "./postgres-address.ts";
import { workers } from "./schema/index.ts";
import { forDriver } from "./plain-statements.ts";
import { assigned, bare, insertFrom, named } from "./statements.ts";

/** The class of our locks, among all advisory locks of the database. Any number, the same in every version. */
const LOCK_CLASS = 7_305_143;
const RECONNECT_MS = 200;
const CONNECT_TIMEOUT_MS = 5_000;
/**
 * After Postgres restarted, or another server replaced it, all leases are free for a moment. The second case is visible only by
 * this worker's own lost connection: a standby that was promoted may have been up for weeks.
 */
const SETTLING_MS = 10_000;
/** Another schema of the same database numbers its workers itself, so its locks have another class: even and positive. */
const CLASS = forDriver(sql`select case current_schema() when 'public' then ${LOCK_CLASS}
  else hashtext('longhaul lease ' || current_schema()) & 2147483646 end as class`);
/**
 * A machine that is cut off closes no connection: Postgres probes after 5 s of silence, and frees the lease some 6 s later
 * instead of after two hours. Chosen: a live worker's connection is never idle that long.
 */
const KEEPALIVE =
  "set application_name = 'longhaul-lease'; set tcp_keepalives_idle = 5; set tcp_keepalives_interval = 2; set tcp_keepalives_count = 3";

/** Any statement shows that the worker is alive. */
const ALIVE = forDriver(sql`select`);

export interface LostWorker {
  readonly id: number;
  readonly identity: string;
  /** The worker has its lease, but has been silent for longer than the heartbeat timeout. It may come back. */
  readonly frozen: boolean;
  /** Those whose calls it ran when it last checked for lost workers itself. It may have more calls by now, or fewer. */
  readonly sessions: readonly string[];
}

export interface LeaseOptions {
  readonly url: string;
  readonly identity: string;
  readonly namespace: string;
  /** How long a worker may be silent before it counts as frozen, in ms: no shorter than the heartbeat timeout. */
  readonly frozenMs: number;
  /** Whose calls this worker runs now. */
  readonly sessionsAtWork: () => readonly string[];
  /** Default 10 s. */
  readonly settlingMs?: number;
}

/** Held from its start to its stop; if the connection breaks, it is taken again as soon as Postgres answers. */
export class WorkerLease implements Service {
  readonly #options: LeaseOptions;
  readonly #settlingMs: number;
  #settledAt = 0;
  #id: number | undefined;
  #class = LOCK_CLASS;
  #client: pg.Client | undefined;
  #speaking: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: LeaseOptions) {
    this.#options = options;
    this.#settlingMs = options.settlingMs ?? SETTLING_MS;
  }

  async start(): Promise<void> {
    this.#client = await this.#connect();
    const speak = () => void this.#client?.query(ALIVE).catch(() => undefined);
    // Also while this worker frees another's work, however long that takes.
    this.#speaking = setInterval(speak, this.#options.frozenMs / 3);
  }

  /**
   * Records what this worker has at work.
   * @returns workers without their lease now, or frozen, apart from this one; none while Postgres is away or has just come back
   */
  async missing(): Promise<readonly LostWorker[]> {
    if (this.#client === undefined) return [];
    this.#speaking?.refresh();
    const { namespace, frozenMs, sessionsAtWork } = this.#options;
    const rows = await missingWorkers(this.#client, {
      id: this.#id,
      namespace,
      lockClass: this.#class,
      frozenMs,
      settlingMs: this.#settlingMs,
      sessions: sessionsAtWork(),
    });
    return performance.now() < this.#settledAt ? [] : rows;
  }

  /**
   * Runs `cleanUp` for a lost worker, in one worker at a time. Afterwards the lost worker is marked as ended, which the next
   * caller finds.
   * @returns false if it has its lease again, or another worker is doing this
   */
  async settle(worker: LostWorker, cleanUp: () => Promise<void>): Promise<boolean> {
    const client = this.#client;
    if (client === undefined) return false;
    // The workers that free a frozen worker's tasks exclude each other by the next class.
    const lock = sql`${this.#class + (worker.frozen ? 1 : 0)}, ${worker.id}`;
    const { rows } = await client.query<{ taken: boolean }>(
      forDriver(sql`select pg_try_advisory_lock(${lock}) as taken`),
    );
    if (!rows[0]?.taken) return false;
    try {
      const open = await client.query(forDriver(sql`select from ${openWorker(worker.id)}`));
      if (open.rowCount === 0) return false;
      await this.#endIdle(client, worker);
      await cleanUp();
      if (!worker.frozen) await client.query(endOf(worker.id));
      return true;
    } finally {
      await client.query(forDriver(sql`select pg_advisory_unlock(${lock})`)).catch(() => undefined);
    }
  }

  /** Its transactions that nobody ends keep their locks; what they hold is not written, and a worker that wakes up begins again. */
  async #endIdle(client: pg.Client, { identity }: LostWorker): Promise<void> {
    const { frozenMs } = this.#options;
    // A server that does not let us see or end them does so itself, after its time-out.
    await client.query(endIdle(toApplicationName(identity), frozenMs)).catch(() => undefined);
  }

  /** Records that this worker ends by itself. */
  async stop(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#speaking);
    if (this.#id !== undefined) await this.#client?.query(endOf(this.#id)).catch(() => undefined);
    await this.#client?.end().catch(() => undefined);
  }

  async #connect(): Promise<pg.Client> {
    const client = new pg.Client({
      ...readPostgresAddress(this.#options.url).config,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      keepAlive: true,
    });
    const onEnd = () => {
      if (this.#client !== client || this.#isClosed) return;
      this.#client = undefined;
      void this.#reconnect();
    };
    client.on("error", onEnd);
    client.on("end", onEnd);
    await client.connect();
    try {
      await client.query(KEEPALIVE);
      this.#class = (await client.query<{ class: number }>(CLASS)).rows[0]?.class ?? LOCK_CLASS;
      await this.#take(client);
    } catch (error) {
      await client.end().catch(() => undefined);
      throw error;
    }
    return client;
  }

  async #take(client: pg.Client): Promise<void> {
    const result = this.#id === undefined ? undefined : await client.query(holdAgain(this.#id, this.#class));
    if (result?.rows[0]?.held) return;
    // Others considered it lost in the meantime: from now on it counts as another worker.
    const { identity, namespace } = this.#options;
    const returning = sql`returning ${bare(workers.id)}`;
    const { rows } = await client.query<{ id: number }>(
      forDriver(insertFrom(workers, { identity, namespace }, returning)),
    );
    this.#id = rows[0]?.id ?? 0;
    await client.query(forDriver(sql`select pg_advisory_lock(${this.#class}, ${this.#id})`));
  }

  async #reconnect(): Promise<void> {
    while (!this.#isClosed && this.#client === undefined) {
      try {
        this.#client = await this.#connect();
        this.#settledAt = performance.now() + this.#settlingMs;
        // It was stopped meanwhile.
        if (this.#isClosed) await this.stop();
      } catch {
        await sleep(RECONNECT_MS);
      }
    }
  }
}

/** What Postgres calls a worker's connections: at most 63 characters, in ASCII. */
export const toApplicationName = (identity: string): string =>
  cutChars(`longhaul ${identity.replace(/[^ -~]/g, "?")}`, 63);

const endIdle = (application: string, idleMs: number) =>
  forDriver(sql`select pg_terminate_backend(pid) from pg_stat_activity
  where datname = current_database() and usename = current_user and application_name = ${application}
    and state in ('idle in transaction', 'idle in transaction (aborted)')
    and clock_timestamp() - state_change > ${idleMs} * interval '1 ms'`);

const openWorker = (id: number) => sql`${workers} where ${and(eq(workers.id, id), isNull(workers.endedAt))}`;

const endOf = (id: number) =>
  forDriver(sql`update ${workers}
    set ${assigned([workers.endedAt, sql`now()`], [workers.sessions, []])} where ${eq(workers.id, id)}`);

const holdAgain = (id: number, lockClass: number) =>
  forDriver(
    sql`select pg_try_advisory_lock(${lockClass}, ${id}) and exists (select from ${openWorker(id)}) as held`,
  );

interface Asking {
  readonly id: number | undefined;
  readonly namespace: string;
  readonly lockClass: number;
  readonly frozenMs: number;
  readonly settlingMs: number;
  readonly sessions: readonly string[];
}

const parameter = (name: keyof Asking) => sql.placeholder(name);

/** One statement, so that the record costs no commit of its own. */
const MISSING = named(
  "longhaul_missing_workers",
  sql`with own as (
      update ${workers} set ${bare(workers.sessions)} = ${parameter("sessions")}
      where ${workers.id} = ${parameter("id")} and ${workers.sessions} <> ${parameter("sessions")})
    select ${workers.id}, ${workers.identity}, lease.pid is not null as frozen, ${workers.sessions} from ${workers}
    left join pg_locks lease on lease.locktype = 'advisory' and lease.granted and lease.objsubid = 2
      and lease.database = (select oid from pg_database where datname = current_database())
      and lease.classid = ${parameter("lockClass")} and lease.objid = ${workers.id}
    left join pg_stat_activity said on said.pid = lease.pid
    where ${isNull(workers.endedAt)} and ${workers.id} <> ${parameter("id")} and ${workers.namespace} = ${parameter("namespace")}
      and clock_timestamp() - pg_postmaster_start_time() > ${parameter("settlingMs")} * interval '1 ms'
      and (lease.pid is null or clock_timestamp() - said.state_change > ${parameter("frozenMs")} * interval '1 ms')
    order by ${workers.id}`,
);

const missingWorkers = async (client: pg.Client, asking: Asking): Promise<LostWorker[]> =>
  (await MISSING(client, { ...asking })).rows as LostWorker[];
