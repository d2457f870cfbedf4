/** Questions to people and how they ended. A row is marked, never deleted; the workflow decides which answer counts. */
import { rowsGone } from "../contract/failures.ts";
import { and, asc, eq, isNull, like, ne, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type { QuestionKind } from "../contract/questions.ts";
import { isLive } from "./live-line.ts";
import type { Queryable } from "./db.ts";
import type { NewEvent } from "./event.ts";
import { permissionGrants, questions, sessions } from "./schema/index.ts";

/** The longest list for people. */
const MAX_LISTED = 1_000;

export type QuestionRow = typeof questions.$inferSelect;
export type QuestionStatus = "open" | "answered" | "defaulted" | "declined" | "withdrawn" | "superseded";

export interface QuestionOption {
  readonly label: string;
  readonly description?: string | undefined;
}

export interface NewQuestion {
  readonly sessionId: string;
  readonly epoch: number;
  readonly id: string;
  readonly step: number;
  /** Null for a question that no call asks. */
  readonly callIndex: number | null;
  readonly kind: QuestionKind;
  readonly text: string;
  readonly options: readonly QuestionOption[] | null;
  readonly defaultText: string | null;
  /** SHA-256 of the call's tool and input; null if there is no call. */
  readonly inputHash: string | null;
  /** False: its call goes on, and the answer comes as a message. Default true. */
  readonly blocks?: boolean;
  readonly expiresInMs: number | undefined;
}

const isQuestion = (sessionId: string, epoch: number, id: string) =>
  and(eq(questions.sessionId, sessionId), eq(questions.epoch, epoch), eq(questions.id, id));

/** Stores a question, once. @returns its current row, and whether it is new */
export async function openQuestion(
  db: Queryable,
  question: NewQuestion,
): Promise<{ readonly row: QuestionRow; readonly isNew: boolean }> {
  const { expiresInMs, ...values } = question;
  const expiresAt = expiresInMs === undefined ? null : sql`now() + ${expiresInMs} * interval '1 ms'`;
  const [inserted] = await db
    .insert(questions)
    .values({ ...values, expiresAt })
    .onConflictDoNothing()
    .returning();
  const row = inserted ?? (await findQuestion(db, question.sessionId, question.epoch, question.id));
  if (row === undefined) throw rowsGone("the question was not stored");
  return { row, isNew: inserted !== undefined };
}

/** Time until an open question's default is used, by the database's clock; undefined if it has no default, or no time limit. */
export async function timeLeftMs(
  db: Queryable,
  { sessionId, epoch, id }: Pick<QuestionRow, "sessionId" | "epoch" | "id">,
): Promise<number | undefined> {
  const remaining = sql`${questions.expiresAt} - clock_timestamp()`;
  const leftMs = sql<number>`greatest(1, round(1000 * extract(epoch from ${remaining})))::float8`;
  const [row] = await db
    .select({ leftMs: sql<number | null>`case when ${questions.expiresAt} is not null then ${leftMs} end` })
    .from(questions)
    .where(isQuestion(sessionId, epoch, id));
  return row?.leftMs ?? undefined;
}

export async function findQuestion(
  db: Queryable,
  sessionId: string,
  epoch: number,
  id: string,
): Promise<QuestionRow | undefined> {
  const [row] = await db
    .select()
    .from(questions)
    .where(isQuestion(sessionId, epoch, id));
  return row;
}

/** As `findQuestion`, of any epoch, while it is open. */
export async function findOpenQuestion(
  db: Queryable,
  sessionId: string,
  id: string,
): Promise<QuestionRow | undefined> {
  return (await openQuestions(db, sessionId)).find((question) => question.id === id);
}

/** How many questions with that name in a step have ended: the next one gets the next number. @param epoch default: of all */
export async function questionsBefore(
  db: Queryable,
  {
    sessionId,
    epoch,
    step,
    name,
  }: Pick<NewQuestion, "sessionId" | "step"> & { readonly epoch?: number | undefined; readonly name: string },
): Promise<number> {
  const rows = await db
    .select({ id: questions.id })
    .from(questions)
    .where(
      and(
        eq(questions.sessionId, sessionId),
        epoch === undefined ? undefined : eq(questions.epoch, epoch),
        eq(questions.step, step),
        like(questions.id, `s${step}${name}%`),
        ne(questions.status, "open"),
      ),
    );
  return rows.length;
}

/** Ends an open question. @returns false if it had ended */
export async function closeQuestion(
  db: Queryable,
  question: { readonly sessionId: string; readonly epoch: number; readonly id: string },
  end: {
    readonly status: Exclude<QuestionStatus, "open">;
    readonly answer?: string | undefined;
    readonly by?: string | undefined;
  },
): Promise<boolean> {
  const rows = await db
    .update(questions)
    .set({
      status: end.status,
      answer: end.answer ?? null,
      answeredBy: end.by ?? null,
      answeredAt: sql`now()`,
    })
    .where(and(isQuestion(question.sessionId, question.epoch, question.id), eq(questions.status, "open")))
    .returning({ id: questions.id });
  return rows.length > 0;
}

/**
 * Withdraws open questions whose answers are no longer needed. @returns their events
 * @param isOver the run ends: those that block no call go, too
 */
export async function withdrawOpen(
  db: Queryable,
  sessionId: string,
  { reason, isOver }: { readonly reason: "stopped"; readonly isOver: boolean },
): Promise<NewEvent[]> {
  const rows = await db
    .update(questions)
    .set({ status: "withdrawn", answeredAt: sql`now()` })
    .where(
      and(
        eq(questions.sessionId, sessionId),
        eq(questions.status, "open"),
        isOver ? undefined : questions.blocks,
      ),
    )
    .returning({ id: questions.id, step: questions.step });
  if (rows.length > 0) await setWaiting(db, sessionId, false);
  return rows.map(({ id, step }) => ({ type: "question:withdrawn", step, data: { id, reason } }));
}

/** Sets whether the session waits only for people. A session that has ended is not changed. */
export async function setWaiting(db: Queryable, sessionId: string, isWaiting: boolean): Promise<void> {
  const [from, to] = isWaiting ? (["active", "waiting"] as const) : (["waiting", "active"] as const);
  await db
    .update(sessions)
    .set({ status: to, updatedAt: sql`now()` })
    .where(and(eq(sessions.id, sessionId), eq(sessions.status, from)));
}

/** Open questions, oldest first. */
export async function openQuestions(db: Queryable, sessionId: string): Promise<QuestionRow[]> {
  return db
    .select()
    .from(questions)
    .where(and(eq(questions.sessionId, sessionId), eq(questions.status, "open")))
    .orderBy(asc(questions.askedAt), asc(questions.id));
}

/** Calls that a person allowed for the rest of the session when a rule asked. */
export interface Grant {
  readonly tool: string;
  /** The part of the call that it covers; null means every call of the tool. */
  readonly match: string | null;
}

/** How the questions that a call's MCP server asked have ended so far, by their ids. */
export async function serverAnswers(
  db: Queryable,
  call: {
    readonly sessionId: string;
    readonly epoch: number;
    readonly step: number;
    readonly index: number;
  },
): Promise<Map<string, { readonly status: string; readonly answer: string | null }>> {
  const rows = await db
    .select({ id: questions.id, status: questions.status, answer: questions.answer })
    .from(questions)
    .where(
      and(
        eq(questions.sessionId, call.sessionId),
        eq(questions.epoch, call.epoch),
        eq(questions.step, call.step),
        eq(questions.callIndex, call.index),
        eq(questions.kind, "mcp"),
      ),
    );
  return new Map(rows.map(({ id, ...end }) => [id, end]));
}

/** What a person allowed for the rest of the session. */
export async function grantsOf(db: Queryable, sessionId: string): Promise<Grant[]> {
  return db
    .select({ tool: permissionGrants.tool, match: permissionGrants.match })
    .from(permissionGrants)
    .where(isLive(permissionGrants, sessionId));
}

export async function grant(
  db: Queryable,
  at: { readonly sessionId: string; readonly epoch: number; readonly step: number },
  permission: Grant,
  by: string | undefined,
): Promise<void> {
  await db.insert(permissionGrants).values({ ...at, ...permission, grantedBy: by ?? null });
}

/** Whether a person allowed exactly this call, in this epoch. */
export async function isApproved(
  db: Queryable,
  call: {
    readonly sessionId: string;
    readonly epoch: number;
    readonly id: string;
    readonly inputHash: string;
  },
): Promise<boolean> {
  const row = await findQuestion(db, call.sessionId, call.epoch, call.id);
  return (
    row?.status === "answered" && (row.answer ?? "").startsWith("allow") && row.inputHash === call.inputHash
  );
}

/** A question as people see it in lists. */
export interface ListedQuestion {
  readonly session: string;
  readonly id: string;
  readonly kind: QuestionKind;
  readonly status: QuestionStatus;
  readonly text: string;
  readonly options: readonly QuestionOption[] | null;
  readonly default: string | null;
  readonly asked: string;
  readonly expiresAt: string | null;
  readonly answer: string | null;
  readonly by: string | null;
  readonly answeredAt: string | null;
}

/**
 * Questions of running sessions, oldest first.
 * @param of a session, including its delegates; default all sessions
 * @param all also answered questions, and those of sessions that have ended
 */
export async function listQuestions(
  db: Queryable,
  { of, all = false }: { readonly of?: string | undefined; readonly all?: boolean | undefined },
): Promise<ListedQuestion[]> {
  const delegate = alias(sessions, "delegate");
  const family = sql`with recursive family(member) as (
      select ${of ?? ""}::text
      union all select ${delegate.id} from ${sessions} ${delegate} join family on ${delegate.parentId} = member
    ) select member from family`;
  const rows = await db
    .select({ row: questions })
    .from(questions)
    .innerJoin(sessions, eq(sessions.id, questions.sessionId))
    .where(
      and(
        of === undefined ? undefined : sql`${questions.sessionId} in (${family})`,
        all ? undefined : and(eq(questions.status, "open"), isNull(sessions.endedAt)),
      ),
    )
    .orderBy(asc(questions.askedAt), asc(questions.sessionId), asc(questions.id))
    .limit(MAX_LISTED);
  return rows.map(({ row }) => ({
    session: row.sessionId,
    id: row.id,
    kind: row.kind as QuestionKind,
    status: row.status as QuestionStatus,
    text: row.text,
    options: row.options as readonly QuestionOption[] | null,
    default: row.defaultText,
    asked: row.askedAt.toISOString(),
    expiresAt: row.expiresAt?.toISOString() ?? null,
    answer: row.answer,
    by: row.answeredBy,
    answeredAt: row.answeredAt?.toISOString() ?? null,
  }));
}
