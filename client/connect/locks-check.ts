/**
 * Connections that keep others of the database waiting, such as a client's that took an advisory lock and idles, or one whose machine
 * is gone: time-outs of roles do not end those, and only a superuser may. Changes nothing.
 */
import { innermostReason } from "../../activities/contract/errors.ts";
import { openStore, type Store } from "../../activities/store/db.ts";
import { plural } from "../console/format.ts";
import type { Finding } from "../setup/sandbox-check.ts";
import { findServices } from "../setup/services.ts";

/** Ours hold locks for moments; a migration, or a purge of a large session, takes some seconds. Source: ours. */
const WAITS_MS = 15_000;
const SHOWN = 5;

interface Blocker {
  readonly pid: number;
  readonly role: string | null;
  readonly waiting: number;
  readonly seconds: number;
}

/** For doctor. Never rejects: what cannot be asked is said. */
export async function checkLocks(): Promise<Finding> {
  let store: Store | undefined;
  try {
    store = openStore({ url: findServices().databaseUrl, maxConnections: 1 });
    return await locksFinding(store);
  } catch (error) {
    return { ok: true, warning: true, found: `not looked at (${innermostReason(error)})` };
  } finally {
    await store?.close();
  }
}

/** @param waitsMs how long others must have waited for it */
export async function locksFinding({ pool }: Pick<Store, "pool">, waitsMs = WAITS_MS): Promise<Finding> {
  const { rows } = await pool.query<Blocker>(BLOCKERS, [waitsMs]);
  if (rows.length === 0) return { ok: true, found: "nothing waits for a lock that another connection keeps" };
  const lines = rows
    .slice(0, SHOWN)
    .map(
      ({ pid, role, waiting, seconds }) =>
        `process ${pid} of ${role ?? "the server"}: ${plural(waiting, "connection")} waiting, up to ${seconds} s. To end it, as a superuser: select pg_terminate_backend(${pid})`,
    );
  const more = rows.length > SHOWN ? [`and ${rows.length - SHOWN} more`] : [];
  return {
    ok: true,
    warning: true,
    found: `${plural(rows.length, "connection")} to Postgres kept others waiting for a lock`,
    fix: [...lines, ...more].join("\n"),
  };
}

/** Those at the head of a queue: one that waits itself is not the cause. */
const BLOCKERS = `select b.pid, b.usename as role, count(distinct w.pid)::int as waiting,
    round(extract(epoch from max(clock_timestamp() - l.waitstart)))::int as seconds
  from pg_locks l
  join pg_stat_activity w on w.pid = l.pid
  cross join lateral unnest(pg_blocking_pids(l.pid)) as blocked(by)
  join pg_stat_activity b on b.pid = blocked.by
  where not l.granted and w.datname = current_database()
    and l.waitstart < clock_timestamp() - $1 * interval '1 ms'
    and cardinality(pg_blocking_pids(b.pid)) = 0
  group by b.pid, b.usename order by waiting desc, b.pid`;
