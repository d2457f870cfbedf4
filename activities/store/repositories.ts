/** The repository of a session, and what was delivered of its work. */
import { and, desc, eq, ne, sql } from "drizzle-orm";
import type { DeliveryState, PublishInput } from "../contract/delivery.ts";
import type { Queryable } from "./db.ts";
import { publications, repositories } from "./schema/index.ts";

export type Repository = typeof repositories.$inferSelect;
export type PublicationRow = typeof publications.$inferSelect;

export async function findRepository(db: Queryable, sessionId: string): Promise<Repository | undefined> {
  const [row] = await db.select().from(repositories).where(eq(repositories.sessionId, sessionId));
  return row;
}

export async function saveRepository(db: Queryable, row: Repository): Promise<void> {
  await db.insert(repositories).values(row).onConflictDoUpdate({ target: repositories.sessionId, set: row });
}

export interface NewPublication {
  readonly sessionId: string;
  readonly epoch: number;
  readonly step: number;
  readonly kind: PublishInput["kind"];
  readonly ref: string;
  readonly commit: string;
  readonly url?: string | undefined;
  readonly status: "begun" | "done" | "refused";
  readonly reason?: string | undefined;
  /** What did not come out as it was asked for, although it was delivered; absent: nothing. */
  readonly remarks?: readonly string[] | undefined;
  readonly runId: string;
}

/** @returns false if the same run has recorded the same before */
export async function recordPublication(db: Queryable, publication: NewPublication): Promise<boolean> {
  const { sessionId, kind, ref, commit } = publication;
  const { url = null, reason = null, remarks = null } = publication;
  const values = { ...publication, url, reason, remarks };
  const [before] = await db
    .select()
    .from(publications)
    .where(
      and(
        eq(publications.sessionId, sessionId),
        eq(publications.kind, kind),
        eq(publications.ref, ref),
        eq(publications.commit, commit),
      ),
    );
  const { epoch, step, status, runId } = values;
  await db
    .insert(publications)
    .values(values)
    .onConflictDoUpdate({
      target: [publications.sessionId, publications.kind, publications.ref, publications.commit],
      set: {
        epoch,
        step,
        url,
        status,
        reason,
        // What a pull request did not get when it was opened, no later run asks for.
        remarks: remarks ?? sql`${publications.remarks}`,
        runId,
        at: sql`clock_timestamp()`,
      },
    });
  return (
    before?.status !== status || before.reason !== reason || before.url !== url || before.runId !== runId
  );
}

/**
 * Announces a delivery before it is made. What was recorded as done stays so.
 * @returns whether an earlier attempt or run announced it too, and did not record its outcome
 */
export async function announcePublication(
  db: Queryable,
  publication: Omit<NewPublication, "status" | "url" | "reason" | "remarks">,
): Promise<boolean> {
  const { epoch, step, runId } = publication;
  const [row] = await db
    .insert(publications)
    .values({ ...publication, status: "begun" })
    .onConflictDoUpdate({
      target: [publications.sessionId, publications.kind, publications.ref, publications.commit],
      set: { epoch, step, runId },
      setWhere: ne(publications.status, "done"),
    })
    .returning({ status: publications.status, isNew: sql<boolean>`xmax = 0` });
  if (row === undefined || row.isNew) return false;
  if (row.status === "begun") return true;
  await db
    .update(publications)
    .set({ status: "begun", reason: null })
    .where(
      and(
        eq(publications.sessionId, publication.sessionId),
        eq(publications.kind, publication.kind),
        eq(publications.ref, publication.ref),
        eq(publications.commit, publication.commit),
      ),
    );
  return false;
}

/** Nothing is left to deliver to the branch: earlier refusals are over. */
export async function settleRefusals(db: Queryable, sessionId: string, ref: string): Promise<void> {
  await db
    .update(publications)
    .set({ status: "settled" })
    .where(
      and(
        eq(publications.sessionId, sessionId),
        eq(publications.kind, "push"),
        eq(publications.ref, ref),
        eq(publications.status, "refused"),
      ),
    );
}

/** Newest first. */
export async function listPublications(db: Queryable, sessionId: string): Promise<PublicationRow[]> {
  return db
    .select()
    .from(publications)
    .where(eq(publications.sessionId, sessionId))
    .orderBy(desc(publications.at), desc(publications.id));
}

/** A commit that the session has pushed to a branch, or wanted to. */
export interface BranchPush {
  readonly commit: string;
  readonly at: Date;
  /** It is known to be on the remote; if it is not refused either, a push of it had begun. */
  readonly isDone: boolean;
  readonly isRefused: boolean;
}

/** Newest first. */
export async function listPushes(db: Queryable, sessionId: string, branch: string): Promise<BranchPush[]> {
  const rows = await listPublications(db, sessionId);
  return rows
    .filter(({ kind, ref }) => kind === "push" && ref === branch)
    .map(({ commit, at, status }) => ({
      commit,
      at,
      isDone: status === "done",
      isRefused: status === "refused",
    }));
}

/** The outcome of the newest push, of the newest pull request and of the newest review. */
export function toDeliveryState(
  newestFirst: readonly Pick<PublicationRow, "kind" | "status">[],
): DeliveryState {
  const newest = ["push", "pull-request", "review"].flatMap(
    (kind) =>
      newestFirst.find(
        ({ kind: other, status }) => other === kind && (status === "done" || status === "refused"),
      ) ?? [],
  );
  if (newest.length === 0) return "none";
  return newest.some(({ status }) => status === "refused") ? "refused" : "done";
}
