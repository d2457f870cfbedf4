/** What a session stored: rows in order, and everything as text to search. */
import { and, asc, eq, ne } from "drizzle-orm";
import type { WorkflowHandle } from "@temporalio/client";
import type { Store } from "../../activities/store/db.ts";
import { compactionEvents, messages, modelCalls, toolCalls } from "../../activities/store/schema/index.ts";

type MessageRow = typeof messages.$inferSelect;
type CallRow = typeof toolCalls.$inferSelect;

/** All messages of a session in order, with abandoned lines and without its prompt. */
export function transcriptOf({ db }: Pick<Store, "db">, sessionId: string): Promise<MessageRow[]> {
  return db
    .select()
    .from(messages)
    .where(and(eq(messages.sessionId, sessionId), ne(messages.role, "system")))
    .orderBy(asc(messages.sequence));
}

export async function answersOf(store: Pick<Store, "db">, sessionId: string): Promise<MessageRow[]> {
  return (await transcriptOf(store, sessionId)).filter((row) => row.slot === "assistant");
}

/** Texts of the tool results of a session, in order. */
export async function resultTexts(store: Pick<Store, "db">, sessionId: string): Promise<string[]> {
  const rows = (await transcriptOf(store, sessionId)).filter((row) => row.role === "tool");
  return rows.map((row) => (row.content as [{ text: string }])[0].text);
}

export function callRows({ db }: Pick<Store, "db">, sessionId: string, status?: string): Promise<CallRow[]> {
  const isWanted = status === undefined ? undefined : eq(toolCalls.status, status);
  return db
    .select()
    .from(toolCalls)
    .where(and(eq(toolCalls.sessionId, sessionId), isWanted))
    .orderBy(asc(toolCalls.sequence));
}

/** A session's compactions, in order. */
export const roundsOf = ({ db }: Pick<Store, "db">, sessionId: string) =>
  db
    .select()
    .from(compactionEvents)
    .where(eq(compactionEvents.sessionId, sessionId))
    .orderBy(asc(compactionEvents.id));

/** A session's requests to the model, in order. */
export const billsOf = ({ db }: Pick<Store, "db">, sessionId: string) =>
  db.select().from(modelCalls).where(eq(modelCalls.sessionId, sessionId)).orderBy(asc(modelCalls.id));

/** Notices about the sandbox that the model got at step boundaries. */
export async function noticesOf(store: Pick<Store, "db">, sessionId: string): Promise<string[]> {
  const rows = (await transcriptOf(store, sessionId)).filter((row) => row.kind === "notice");
  return rows.map((row) => (row.content as [{ text: string }])[0].text);
}

/** Every row of every table, as Postgres writes it. */
export async function wholeDatabase({ pool }: Pick<Store, "pool">): Promise<string> {
  const tables = await pool.query<{ name: string }>(
    "select tablename as name from pg_tables where schemaname = 'public'",
  );
  const texts: string[] = [];
  for (const { name } of tables.rows) {
    const { rows } = await pool.query<{ row: string }>(`select t::text as row from "${name}" t`);
    texts.push(...rows.map(({ row }) => row));
  }
  if (texts.length === 0) throw new Error("The database is empty: nothing was looked through.");
  return texts.join("\n");
}

/** The first second attempt of an activity in a run's history. */
export async function secondAttempt(handle: Pick<WorkflowHandle, "fetchHistory">) {
  const { events } = await handle.fetchHistory();
  const started = (events ?? []).map((event) => event.activityTaskStartedEventAttributes);
  return started.find((attempt) => attempt?.attempt === 2);
}

/** The whole history with its payloads readable. */
export async function wholeHistory(handle: Pick<WorkflowHandle, "fetchHistory">): Promise<string> {
  return readableHistory(await handle.fetchHistory());
}

export const readableHistory = (history: object): string => JSON.stringify(plain(history));

function plain(value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value).toString();
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, field]) => [key, plain(field)]));
}

/** Every string of a document, also decoded from base64. */
export function textsIn(value: unknown): string[] {
  if (typeof value === "string") return [value, Buffer.from(value, "base64").toString()];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(textsIn) : [];
}
