/** Attempts at one task: what is known of each when the best is chosen, and the choice. */
import { and, asc, desc, eq, gt, isNotNull } from "drizzle-orm";
import type { RunConfig } from "../config/agent-config.ts";
import type { TaskAttempt, AttemptsOrder, ChosenAttempt } from "../contract/attempts.ts";
import type { VerifyOutcome } from "../contract/verify.ts";
import type { Batch } from "./batches.ts";
import type { Queryable } from "./db.ts";
import { spentUsd } from "./model-calls.ts";
import { batches, batchItems, sessions, verifications } from "./schema/index.ts";

export interface StoredAttempt extends TaskAttempt {
  readonly config: RunConfig;
  /** The files that were verified. */
  readonly tree: string;
}

export const attemptsOrder = ({ attempts }: Pick<Batch, "attempts">) =>
  (attempts ?? undefined) as AttemptsOrder | undefined;
export const chosenAttempt = ({ chosen }: Pick<Batch, "chosen">) =>
  (chosen ?? undefined) as ChosenAttempt | undefined;

/** Those that ended by an answer and were verified, by their numbers. */
export async function listAttempts(db: Queryable, batchId: string): Promise<StoredAttempt[]> {
  const rows = await db
    .select({
      sessionId: sessions.id,
      number: batchItems.ordinal,
      outcome: sessions.verified,
      config: sessions.config,
    })
    .from(batchItems)
    .innerJoin(sessions, eq(sessions.id, batchItems.sessionId))
    .where(
      and(
        eq(batchItems.batchId, batchId),
        gt(batchItems.ordinal, 0),
        eq(sessions.status, "completed"),
        isNotNull(sessions.verified),
      ),
    )
    .orderBy(asc(batchItems.ordinal));
  return Promise.all(
    rows.map(async ({ outcome, config, ...row }) => ({
      ...row,
      ...(await newestLook(db, row.sessionId)),
      config: config as RunConfig,
      outcome: outcome as VerifyOutcome,
      costUsd: await spentUsd(db, row.sessionId),
    })),
  );
}

/** What the last command of the newest look found. */
async function newestLook(
  db: Queryable,
  sessionId: string,
): Promise<Pick<StoredAttempt, "tree" | "result" | "changedLines">> {
  const { epoch, step, round, command, tree, result, changedLines } = verifications;
  const [row] = await db
    .select({ tree, result, changedLines })
    .from(verifications)
    .where(eq(verifications.sessionId, sessionId))
    .orderBy(desc(epoch), desc(step), desc(round), desc(command))
    .limit(1);
  return {
    tree: row?.tree ?? "",
    result: row?.result ?? undefined,
    changedLines: row?.changedLines ?? undefined,
  };
}

/** Whether an attempt has passed, and nothing else: changed checks decide only at the end. */
export async function hasPassed(db: Queryable, batchId: string): Promise<boolean> {
  return (await listAttempts(db, batchId)).some(({ outcome }) => outcome === "passed");
}

export async function recordChosen(db: Queryable, batchId: string, chosen: ChosenAttempt): Promise<void> {
  await db.update(batches).set({ chosen }).where(eq(batches.id, batchId));
}
