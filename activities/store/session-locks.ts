/** The locks that writers of a session take. Each ends with its transaction. */
import { eq, sql } from "drizzle-orm";
import type { Queryable, Store } from "./db.ts";
import { sessions } from "./schema/index.ts";

const claimOf = (db: Queryable, sessionId: string) =>
  db
    .select({ runId: sessions.runId, epoch: sessions.epoch })
    .from(sessions)
    .where(eq(sessions.id, sessionId));

/** Keeps other runs from claiming the session, if this run has it. Several writers of the run may hold this lock at once. */
export async function lockRun(db: Queryable, sessionId: string, runId: string): Promise<boolean> {
  const [session] = await claimOf(db, sessionId).for("share");
  return session?.runId === runId;
}

/**
 * The run that has the session, and the epoch in force. No reset and no other writer can intervene.
 * @returns undefined if there is no such session
 */
export async function lockSession(
  db: Queryable,
  sessionId: string,
): Promise<{ readonly runId: string | null; readonly epoch: number } | undefined> {
  const [session] = await claimOf(db, sessionId).for("no key update");
  return session;
}

/** As `lockRun`, but keeps out the run's own other writers, too. */
export async function lockRunAlone(db: Queryable, sessionId: string, runId: string): Promise<boolean> {
  return (await lockSession(db, sessionId))?.runId === runId;
}

/** Keeps all other workers from opening, saving or removing the session's sandbox. Its row is not locked. */
export async function lockSandbox(tx: Queryable, sessionId: string): Promise<void> {
  await tx.execute(sql`select pg_advisory_xact_lock(hashtext('session'), hashtext(${sessionId}))`);
}

/** How often such a transaction says something. Chosen: a tenth of how long one may idle (db.ts). */
const AWAKE_MS = 60_000;

/** Keeps a transaction from being ended as idle while `work` goes on, such as a project's set-up, as long as this process lives. */
export async function keepAwake<T>(tx: Queryable, work: () => Promise<T>): Promise<T> {
  const timer = setInterval(() => void tx.execute(sql`select 1`).catch(() => undefined), AWAKE_MS);
  try {
    return await work();
  } finally {
    clearInterval(timer);
  }
}

/** Runs in a transaction that holds the lock on the session's sandbox. */
export async function withSandboxLock<T>(
  store: Pick<Store, "db">,
  sessionId: string,
  body: (tx: Queryable) => Promise<T>,
): Promise<T> {
  return store.db.transaction(async (tx) => {
    await lockSandbox(tx, sessionId);
    return body(tx);
  });
}
