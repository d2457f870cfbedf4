/**
 * Makes a session's row, or takes an existing one after it has proved to be the same session; and cleans what a client stored of it,
 * which knows neither the worker's secrets nor its rules.
 */
import { and, eq, inArray } from "drizzle-orm";
import type { RunConfig } from "../config/agent-config.ts";
import { fatal } from "../contract/failures.ts";
import type { Queryable, Store } from "./db.ts";
import { runs, sessions, schedules, storedMessages } from "./schema/index.ts";
import { createSession, type NewSession } from "./sessions.ts";
import type { MessageKind, UserPart } from "../contract/message.ts";
import { estimateMessage } from "../contract/request-size.ts";
import { estimateText } from "../text/tokens.ts";
import { cleanDeep } from "../text/clean.ts";

/**
 * An id alone proves nothing: an existing row is ours only if it has the owner, the parent's call and the task that the new one
 * would have. Idempotent.
 * @param settingsToo whether its settings must agree as well; its limits apart, which a batch narrows
 * @returns false if the id belongs to another session, of which nothing was read or changed
 */
export async function makeOrAdopt(
  store: Pick<Store, "db">,
  session: NewSession,
  settingsToo = false,
): Promise<boolean> {
  if (await createSession(store, session)) return true;
  const [row] = await store.db.select().from(sessions).where(eq(sessions.id, session.id));
  // Deleted meanwhile: an id is not used twice.
  if (row === undefined) return false;
  const { parent, owner, task, config } = session;
  return (
    row.owner === (owner ?? null) &&
    row.task === task &&
    row.parentId === (parent?.id ?? null) &&
    row.parentCall === (parent?.call ?? null) &&
    row.parentEpoch === (parent?.epoch ?? null) &&
    row.access === (parent?.access ?? null) &&
    (!settingsToo || settings(row.config as RunConfig) === settings(config))
  );
}

const settings = ({ limits: _limits, ...rest }: RunConfig): string => JSON.stringify(rest);

export async function hasSession(db: Queryable, id: string): Promise<boolean> {
  return (await db.$count(sessions, eq(sessions.id, id))) > 0;
}

/** Whether an earlier run of the same chain has had the session: what such a run continues is its own. */
export async function hasRunOfChain(db: Queryable, sessionId: string, chain: string): Promise<boolean> {
  const rows = await db
    .select({ runId: runs.runId })
    .from(runs)
    .where(and(eq(runs.sessionId, sessionId), eq(runs.chain, chain)))
    .limit(1);
  return rows.length > 0;
}

/** What was asked for under an id that belongs to another session. */
export const idTaken = (id: string) =>
  fatal(
    "IdTaken",
    `The id ${id} belongs to another session, which was left as it is. Nothing was started. Choose another id.`,
  );

type Clean = (text: string) => string;

/** The messages that a client writes: the system prompt with its instructions and skills, and the task. */
const WRITTEN_BY_CLIENTS: readonly MessageKind[] = ["system", "task"];

/** Replaces what the worker may not show in a session's task, settings, prompt and first message. Idempotent. */
export async function mendSession(tx: Queryable, id: string, clean: Clean): Promise<void> {
  const { task, config } = sessions;
  const [stored] = await tx.select({ task, config }).from(sessions).where(eq(sessions.id, id));
  if (stored === undefined) return;
  const mended = cleanDeep(stored, clean) as typeof stored;
  if (differs(stored, mended)) await tx.update(sessions).set(mended).where(eq(sessions.id, id));
  const first = await tx
    .select({ id: storedMessages.id, role: storedMessages.role, content: storedMessages.content })
    .from(storedMessages)
    .where(and(eq(storedMessages.sessionId, id), inArray(storedMessages.kind, [...WRITTEN_BY_CLIENTS])));
  for (const { id: message, role, content: old } of first) {
    const content = cleanDeep(old, clean) as UserPart[];
    if (!differs(old, content)) continue;
    const tokenCount =
      role === "system"
        ? estimateText(content.map((part) => (part.type === "text" ? part.text : "")).join(""))
        : estimateMessage({ role: "user", content }, mended.config as RunConfig);
    await tx.update(storedMessages).set({ content, tokenCount }).where(eq(storedMessages.id, message));
  }
}

/** The same for a schedule, before a session is made of it. @returns the schedule as it is stored now */
export async function mendSchedule<
  Row extends Pick<typeof schedules.$inferSelect, "name" | "task" | "config">,
>(db: Queryable, schedule: Row, clean: Clean): Promise<Row> {
  const { name, task, config } = schedule;
  const mended = cleanDeep({ task, config }, clean) as Pick<Row, "task" | "config">;
  if (!differs({ task, config }, mended)) return schedule;
  await db.update(schedules).set(mended).where(eq(schedules.name, name));
  return { ...schedule, ...mended };
}

const differs = (old: unknown, mended: unknown): boolean => JSON.stringify(old) !== JSON.stringify(mended);
