/** The view of a session: the rows that the model sees, neither replaced by a round nor superseded. */
import { and, eq, getTableColumns, gte, inArray, lt, ne, type Placeholder, sql, type SQL } from "drizzle-orm";
import { unionAll } from "drizzle-orm/pg-core";
import { MAX_HEAD_MESSAGES } from "../config/strategies.ts";
import type { StoredMessage } from "../contract/message.ts";
import { outOfView } from "./compactions.ts";
import type { Queryable } from "./db.ts";
import { isLive } from "./live-line.ts";
import { prepared } from "./statements.ts";
import { storedMessages } from "./schema/index.ts";
import { toStoredMessage } from "./transcript.ts";

/** Rows at the beginning, the task included, of which middle removal may have kept answers and results. */
const HEAD_ROWS = MAX_HEAD_MESSAGES + 1;

const {
  id: _id,
  sessionId: _session,
  supersededEpoch: _epoch,
  supersededBy: _by,
  createdAt: _at,
  ...columns
} = getTableColumns(storedMessages);
const { content, position, role, kind, sequence, prunedStep } = columns;

/** What the model sees, in order. O(rows in view), however many were ever stored. */
export async function loadView(db: Queryable, sessionId: string): Promise<StoredMessage[]> {
  return (await viewQuery(db).execute({ sessionId })).map(toStoredMessage);
}

/** Prepared, because each step runs this query, and building and planning it took a third of the time. */
const viewQuery = prepared((db) =>
  viewOf(db, sql`${content}`, sql.placeholder("sessionId")).prepare("load_view"),
);

/**
 * The views of several sessions by one query, for a list. Contents are empty, since their token counts are stored, except for
 * people's messages that were cut: their size is computed from the contents. A session without a view has no entry.
 */
export async function loadViewSizes(
  db: Queryable,
  ids: readonly string[],
): Promise<Map<string, StoredMessage[]>> {
  const isCut = sql`${role} = 'user' and ${prunedStep} is not null`;
  const empty = sql`case when ${role} = 'tool' then '[{"type":"tool-result","text":""}]' else '[]' end`;
  const contents = sql`case when ${isCut} then ${content} else (${empty})::json end`;
  const view = viewOf(db, contents, sql`asked.session`).as("view");
  const rows = await db
    .select({ asked: sql<string>`asked.session`, ...view._.selectedFields })
    .from(sql`unnest(${sql.param([...ids])}::text[]) as asked(session)`)
    .crossJoinLateral(view)
    .orderBy(view.position);
  const bySession = new Map<string, StoredMessage[]>();
  for (const { asked: sessionId, ...row } of rows) {
    const messages = bySession.get(sessionId);
    if (messages === undefined) bySession.set(sessionId, [toStoredMessage(row)]);
    else messages.push(toStoredMessage(row));
  }
  return bySession;
}

/**
 * Every row after the newest summary is in view; before it only people's messages and the head are. Indexes can therefore find
 * the rows, and not every stored row has to be checked for whether a compaction replaced it.
 */
function viewOf(db: Queryable, contents: SQL, sessionId: SQL | Placeholder) {
  // The system prompt is not part of the view.
  const live = and(isLive(storedMessages, sessionId), ne(role, "system"));
  const hidden = db.$with("gone").as(outOfView(sessionId));
  const inView = and(live, sql`not ${sequence} <@ (select out_of_view from gone)`);
  const edge = db.$with("edge").as(
    db
      .select({ summary: sql`coalesce(max(${position}), 0)`.as("summary") })
      .from(storedMessages)
      .where(and(inView, eq(kind, "summary"))),
  );
  const summary = sql`(select summary from edge)`;
  const head = db.select({ position }).from(storedMessages).where(live).orderBy(position).limit(HEAD_ROWS);
  const rowsWhere = (...conditions: SQL[]) =>
    db
      .select({ ...columns, content: contents.mapWith(content).as("content") })
      .from(storedMessages)
      .where(and(inView, ...conditions));
  const rows = unionAll(
    rowsWhere(gte(position, summary)),
    rowsWhere(lt(position, summary), eq(role, "user")),
    rowsWhere(lt(position, summary), ne(role, "user"), inArray(position, head)),
  ).as("rows");
  return db.with(hidden, edge).select().from(rows).orderBy(rows.position);
}
