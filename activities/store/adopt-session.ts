/** Makes a session's row, or takes an existing one after it has proved to be the same session. */
import { and, eq } from "drizzle-orm";
import type { RunConfig } from "../config/agent-config.ts";
import { fatal } from "../contract/failures.ts";
import type { Queryable, Store } from "./db.ts";
import { runs, sessions } from "./schema/index.ts";
import { createSession, type NewSession } from "./sessions.ts";

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
  const found = await db
    .select({ runId: runs.runId })
    .from(runs)
    .where(and(eq(runs.sessionId, sessionId), eq(runs.chain, chain)))
    .limit(1);
  return found.length > 0;
}

/** What was asked for under an id that belongs to another session. */
export const idTaken = (id: string) =>
  fatal(
    "IdTaken",
    `The id ${id} belongs to another session, which was left as it is. Nothing was started. Choose another id.`,
  );
