/** What the commands of `verify` came to: one row per command and round. */
import { and, asc, desc, eq } from "drizzle-orm";
import type { Queryable } from "./db.ts";
import { verifications } from "./schema/index.ts";

export type VerificationRow = typeof verifications.$inferSelect;
type NewVerification = typeof verifications.$inferInsert;

/** A round of one step in one epoch. */
export interface VerifyRound {
  readonly sessionId: string;
  readonly epoch: number;
  readonly step: number;
  readonly round: number;
}

/** Idempotent: what was recorded stays. @returns false if it was recorded before */
export async function recordVerification(db: Queryable, row: NewVerification): Promise<boolean> {
  const rows = await db
    .insert(verifications)
    .values(row)
    .onConflictDoNothing()
    .returning({ command: verifications.command });
  return rows.length > 0;
}

/** The commands of a round that have ended, in order. */
export function listVerifications(db: Queryable, of: VerifyRound): Promise<VerificationRow[]> {
  return db
    .select()
    .from(verifications)
    .where(
      and(
        eq(verifications.sessionId, of.sessionId),
        eq(verifications.epoch, of.epoch),
        eq(verifications.step, of.step),
        eq(verifications.round, of.round),
      ),
    )
    .orderBy(asc(verifications.command));
}

/** The newest round of a step's answer; empty if it was not verified. */
export async function newestVerifications(
  db: Queryable,
  of: Omit<VerifyRound, "round">,
): Promise<VerificationRow[]> {
  const [newest] = await db
    .select({ round: verifications.round })
    .from(verifications)
    .where(
      and(
        eq(verifications.sessionId, of.sessionId),
        eq(verifications.epoch, of.epoch),
        eq(verifications.step, of.step),
      ),
    )
    .orderBy(desc(verifications.round))
    .limit(1);
  return newest === undefined ? [] : listVerifications(db, { ...of, round: newest.round });
}

/** Failures of the commands before the first step, as signatures. */
export async function baselineSignatures(db: Queryable, sessionId: string): Promise<readonly string[]> {
  const rows = await db
    .select({ signature: verifications.signature })
    .from(verifications)
    .where(
      and(
        eq(verifications.sessionId, sessionId),
        eq(verifications.step, 0),
        eq(verifications.outcome, "failed"),
      ),
    );
  return rows.flatMap(({ signature }) => signature ?? []);
}
