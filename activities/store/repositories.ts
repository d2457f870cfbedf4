/** The repository of a session, and what was delivered of its work. */
import { and, desc, eq, sql } from "drizzle-orm";
import type { DeliveryState } from "../contract/delivery.ts";
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
  readonly kind: "push" | "pull-request";
  readonly ref: string;
  readonly commit: string;
  readonly url?: string | undefined;
  readonly status: "done" | "refused";
  readonly reason?: string | undefined;
}

/** @returns false if an identical record exists */
export async function recordPublication(db: Queryable, given: NewPublication): Promise<boolean> {
  const { sessionId, kind, ref, commit } = given;
  const values = { ...given, url: given.url ?? null, reason: given.reason ?? null };
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
  const { epoch, step, url, status, reason } = values;
  await db
    .insert(publications)
    .values(values)
    .onConflictDoUpdate({
      target: [publications.sessionId, publications.kind, publications.ref, publications.commit],
      set: { epoch, step, url, status, reason, at: sql`clock_timestamp()` },
    });
  return before?.status !== status || before.reason !== reason || before.url !== url;
}

/** Newest first. */
export async function listPublications(db: Queryable, sessionId: string): Promise<PublicationRow[]> {
  return db
    .select()
    .from(publications)
    .where(eq(publications.sessionId, sessionId))
    .orderBy(desc(publications.at), desc(publications.id));
}

/** The outcome of the newest push and of the newest pull request. */
export function deliveryOf(newestFirst: readonly Pick<PublicationRow, "kind" | "status">[]): DeliveryState {
  const newest = ["push", "pull-request"].flatMap(
    (kind) => newestFirst.find((row) => row.kind === kind) ?? [],
  );
  if (newest.length === 0) return "none";
  return newest.some(({ status }) => status === "refused") ? "refused" : "done";
}
