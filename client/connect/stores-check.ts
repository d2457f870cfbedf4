/**
 * Compares Postgres and Temporal, which differ after one of them was lost or restored from a backup. What other connections to Postgres wait
 * for is looked at too. Changes nothing.
 */
import { shellWord } from "../console/format.ts";
import type { Client } from "@temporalio/client";
import { endedRuns, openRows, type OpenRow } from "../../activities/store/session-standing.ts";
import { lastUsedStep } from "../../activities/store/missing-steps.ts";
import { plural } from "../../activities/text/format.ts";
import { isMissingTable } from "../lookup/unless-table-missing.ts";
import { openServices, type Services } from "./connection.ts";
import { listOwnRuns } from "../../temporal/own-runs.ts";
import { describedRun, type ListedRun } from "../../temporal/runs.ts";
import { statusQuery } from "../../workflows/messages.ts";
import { innermostReason } from "../../activities/contract/errors.ts";
import { askWithin, withTimeout } from "../../temporal/patience.ts";
import type { Finding } from "../setup/sandbox-check.ts";
import { openStore, type Store } from "../../activities/store/db.ts";
import { findServices } from "../setup/services.ts";

/** More open sessions than this are not compared: doctor ends within about 10 s. Chosen by judgement: it bounds the pages and the query. */
const MAX_SESSIONS = 500;
/** Each is replayed by a worker if it is not in its cache. Chosen by judgement: it bounds doctor's time and the workers' work. */
const MAX_ASKED = 20;
const QUERY_MS = 2_000;
const SHOWN = 10;
/** Source: doctor ends within about 10 s. */
const ANSWER_MS = 8_000;

interface Difference {
  readonly id: string;
  /** Which store lacks or has what. */
  readonly what: string;
  readonly fix: string;
}

/** For doctor. Never rejects, and takes some 10 s at most: what cannot be compared is said. */
export async function checkStores(): Promise<Finding> {
  let services: Services | undefined;
  try {
    services = await openServices();
    return await withTimeout(storesFinding(services), ANSWER_MS);
  } catch (error) {
    return { ok: true, warning: true, found: `not compared (${innermostReason(error)})` };
  } finally {
    await services?.close();
  }
}

const withoutTables = (): Finding => ({
  ok: true,
  warning: true,
  found: "not compared: this database does not have Longhaul's tables, or those of another version",
  fix: "The next worker makes them: npm start, or longhaul worker. If there are sessions already, DATABASE_URL names another database than their worker's.",
});

/** One finding for all differences: what they are, and what to do for each. */
export async function storesFinding(services: Services): Promise<Finding> {
  try {
    return await compare(services);
  } catch (error) {
    if (isMissingTable(error)) return withoutTables();
    throw error;
  }
}

async function compare(services: Services): Promise<Finding> {
  const { db } = services.store;
  const client = await services.temporal.client();
  const rows = await openRows(db, MAX_SESSIONS + 1);
  const running: ListedRun[] = [];
  for await (const run of listOwnRuns(client, { db, taskQueue: services.taskQueue }, "running")) {
    running.push(run);
    if (running.length > MAX_SESSIONS) break;
  }
  if (rows.length > MAX_SESSIONS || running.length > MAX_SESSIONS)
    return {
      ok: true,
      warning: true,
      found: `not compared: more than ${MAX_SESSIONS} sessions are open`,
    };
  const differences = [
    ...(await Promise.all(rows.map((row) => ofRow(client, row, services.temporal.namespace)))),
    ...(await unknownRuns(services, running, rows)),
    ...(await behind(services, client, rows)),
  ].filter((difference) => difference !== undefined);
  return summary(differences, rows.length);
}

function summary(differences: readonly Difference[], open: number): Finding {
  if (differences.length === 0)
    return { ok: true, found: `agree on ${open === 1 ? "the open session" : `${open} open sessions`}` };
  const lines = differences.slice(0, SHOWN).map(({ id, what, fix }) => `${id}: ${what} ${fix}`);
  const more = differences.length > SHOWN ? [`and ${differences.length - SHOWN} more`] : [];
  return {
    ok: true,
    warning: true,
    found: `${plural(differences.length, "difference")} between Postgres and Temporal`,
    fix: [...lines, ...more].join("\n"),
  };
}

/** An open session whose run Temporal does not have, or has closed. */
async function ofRow(client: Client, row: OpenRow, namespace: string): Promise<Difference | undefined> {
  const { id, runId } = row;
  const run = await describedRun(client, id);
  // A client may have stored it a moment ago; it starts the run next.
  if (run === undefined && runId === null)
    return row.isFresh
      ? undefined
      : {
          id,
          what: "is stored, and Temporal has no run of it.",
          fix: `Start it with a message: longhaul say ${shellWord(id)} "Go on."`,
        };
  if (run === undefined)
    return {
      id,
      what: `is open, and Temporal's namespace ${namespace} no longer has its run.`,
      fix: `Go on in a new run: longhaul say ${shellWord(id)} "Go on."`,
    };
  if (run.status === "RUNNING") return undefined;
  return {
    id,
    what: `is open, and its run ended (${run.status.toLowerCase()}).`,
    fix: `A worker ends it within some minutes; or go on: longhaul say ${shellWord(id)} "Go on."`,
  };
}

/** Runs of this installation whose session Postgres does not have, or has as ended by that same run. */
async function unknownRuns(
  { store }: Services,
  running: readonly ListedRun[],
  rows: readonly OpenRow[],
): Promise<Difference[]> {
  const open = new Set(rows.map(({ id }) => id));
  const suspects = running.filter(({ workflowId }) => !open.has(workflowId));
  const ended = await endedRuns(
    store.db,
    suspects.map(({ workflowId }) => workflowId),
  );
  return suspects.flatMap(({ workflowId: id, runId }) => {
    const endedBy = ended.get(id);
    if (endedBy === undefined)
      return [
        {
          id,
          what: "runs in Temporal, and Postgres has no session of this name.",
          fix: `Restore a newer backup of Postgres, or end the run: temporal workflow terminate --workflow-id ${shellWord(id)}`,
        },
      ];
    // Another run than the one that ended it: it is being taken up.
    if (endedBy !== runId) return [];
    return [
      {
        id,
        what: "has ended in Postgres, and the run that ended it is open in Temporal.",
        fix: `Temporal is older than Postgres. Go on: longhaul say ${shellWord(id)} "Go on." Or end the run: temporal workflow terminate --workflow-id ${shellWord(id)}`,
      },
    ];
  });
}

/** Runs that are further than their rows: Postgres is older than Temporal. */
async function behind(
  { store }: Services,
  client: Client,
  rows: readonly OpenRow[],
): Promise<(Difference | undefined)[]> {
  return Promise.all(
    rows.slice(0, MAX_ASKED).map(async ({ id }) => {
      const view = await askWithin(client, QUERY_MS, () =>
        client.workflow.getHandle(id).query(statusQuery),
      ).catch(() => undefined);
      if (view === undefined) return undefined;
      const step = await lastUsedStep(store.db, id);
      // The step in progress has no answer yet.
      if (view.step - 1 <= step) return undefined;
      return {
        id,
        what: `is at step ${view.step} in Temporal, and Postgres ends at step ${step}.`,
        fix: `Postgres is older than Temporal: the steps between are missing, and their effects are in the files. Check them, or go back: longhaul retry ${shellWord(id)} --from-step ${step + 1}`,
      };
    }),
  );
}

/** Chosen: ours hold locks for moments; a migration, or a purge of a large session, takes some seconds. */
const WAITS_MS = 15_000;
const SHOWN_BLOCKERS = 5;

interface Blocker {
  readonly pid: number;
  readonly role: string | null;
  readonly waiting: number;
  readonly seconds: number;
}

/**
 * Connections that keep others of the database waiting, such as a client's that took an advisory lock and idles, or one whose machine
 * is gone: time-outs of roles do not end those, and only a superuser may. Never rejects: what cannot be asked is said.
 */
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
    .slice(0, SHOWN_BLOCKERS)
    .map(
      ({ pid, role, waiting, seconds }) =>
        `process ${pid} of ${role ?? "the server"}: ${plural(waiting, "connection")} waiting, up to ${seconds} s. To end it, as a superuser: select pg_terminate_backend(${pid})`,
    );
  const more = rows.length > SHOWN_BLOCKERS ? [`and ${rows.length - SHOWN_BLOCKERS} more`] : [];
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
