/** What a session costs between two requests to its model: in Temporal, in Postgres, in requests. */
import type { Client } from "@temporalio/client";
import pg from "pg";

export interface Cost {
  /** What a Temporal server bills: each command of a workflow, each signal and update, each attempt of an activity. */
  readonly actions: number;
  /** Of the history. */
  readonly events: number;
  readonly historyBytes: number;
  readonly activities: number;
  readonly commits: number;
  /** Of all tables with a `session_id`. */
  readonly rows: number;
  readonly rowBytes: number;
  readonly requests: number;
  /** The most attempts of one activity: the looks, if it is one that looks. */
  readonly looks: number;
}

export interface StepCost {
  /** Call it while the request is unanswered from which on, or up to which, it counts. `request`: from 1. */
  mark(request: number): Promise<void>;
  /** From the first mark to the last one. The run has ended. */
  between(): Promise<Cost>;
}

interface Mark {
  readonly request: number;
  readonly commits: number;
  readonly rows: number;
  readonly rowBytes: number;
  readonly events: number;
  readonly historyBytes: number;
}

/** @param pool whose commits count: the worker's; the test itself reads by other connections meanwhile */
export function measureSteps(
  { client, pool, url }: { readonly client: Client; readonly pool: pg.Pool; readonly url: string },
  id: string,
): StepCost {
  const commits = countCommits(pool);
  const handle = client.workflow.getHandle(id);
  const marks: Mark[] = [];
  return {
    async mark(request) {
      const before = commits();
      const { raw } = await handle.describe();
      const info = raw.workflowExecutionInfo;
      marks.push({
        request,
        commits: before,
        ...(await rowsOf(url, id)),
        events: Number(info?.historyLength),
        historyBytes: Number(info?.historySizeBytes),
      });
    },
    async between() {
      const [first, last] = [marks[0], marks.at(-1)];
      if (!first || !last || first === last) throw new Error(`${id} did not ask its model twice.`);
      const since = (of: Exclude<keyof Mark, "request">) => last[of] - first[of];
      const { events } = await handle.fetchHistory();
      return {
        ...actionsBetween(events ?? [], first.request, last.request),
        events: since("events"),
        historyBytes: since("historyBytes"),
        commits: since("commits"),
        rows: since("rows"),
        rowBytes: since("rowBytes"),
        requests: last.request - first.request,
      };
    },
  };
}

type HistoryEvents = NonNullable<
  Awaited<ReturnType<ReturnType<Client["workflow"]["getHandle"]>["fetchHistory"]>>["events"]
>;

/** From the activity that makes one request to the one that makes another. */
function actionsBetween(
  events: HistoryEvents,
  first: number,
  last: number,
): Pick<Cost, "actions" | "activities" | "looks"> {
  const steps = events.filter(
    ({ activityTaskScheduledEventAttributes: task }) => task?.activityType?.name === "modelStep",
  );
  const [from, to] = [first, last].map((request) => Number(steps[request - 1]?.eventId));
  const isBetween = (eventId: unknown) => Number(eventId) >= Number(from) && Number(eventId) < Number(to);
  const within = events.filter(({ eventId }) => isBetween(eventId));
  const begun = within.filter(
    (event) =>
      event.timerStartedEventAttributes ??
      event.workflowExecutionSignaledEventAttributes ??
      event.workflowExecutionUpdateAcceptedEventAttributes ??
      event.upsertWorkflowSearchAttributesEventAttributes,
  );
  // An attempt's event is written when the activity is over.
  const attempts = events.flatMap(({ activityTaskStartedEventAttributes: started }) =>
    started && isBetween(started.scheduledEventId) ? [started.attempt ?? 1] : [],
  );
  return {
    actions: begun.length + attempts.reduce((sum, count) => sum + count, 0),
    activities: attempts.length,
    looks: Math.max(0, ...attempts),
  };
}

/** A statement outside of a transaction is one commit, and so is a transaction. */
function countCommits(pool: pg.Pool): () => number {
  let commits = 0;
  const known = new WeakSet<pg.PoolClient>();
  pool.on("acquire", (client) => {
    if (known.has(client)) return;
    known.add(client);
    const query = client.query.bind(client) as (...args: unknown[]) => unknown;
    let isOpen = false;
    const counted = (...args: unknown[]): unknown => {
      const [asked] = args as [string | { readonly text?: string }];
      const words = (typeof asked === "string" ? asked : (asked.text ?? "")).trim().toLowerCase();
      if (words.startsWith("begin")) isOpen = true;
      else if (words.startsWith("commit")) [isOpen, commits] = [false, commits + 1];
      else if (words === "rollback") isOpen = false;
      else if (!isOpen) commits += 1;
      return query(...args);
    };
    client.query = counted as typeof client.query;
  });
  return () => commits;
}

async function rowsOf(url: string, id: string): Promise<Pick<Mark, "rows" | "rowBytes">> {
  const reader = new pg.Client({ connectionString: url });
  await reader.connect();
  try {
    const tables = await reader.query<{ name: string }>(
      "select table_name as name from information_schema.columns where column_name = 'session_id' and table_schema = 'public'",
    );
    const counts = tables.rows.map(
      ({ name }) =>
        `select count(*) as rows, coalesce(sum(pg_column_size(t.*)), 0) as bytes from "${name}" t where session_id = $1`,
    );
    const { rows } = await reader.query<{ rows: string; bytes: string }>(
      `select sum(rows) as rows, sum(bytes) as bytes from (${counts.join(" union all ")}) as counted`,
      [id],
    );
    return { rows: Number(rows[0]?.rows), rowBytes: Number(rows[0]?.bytes) };
  } finally {
    await reader.end();
  }
}
