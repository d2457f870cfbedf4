/** Models' rate limits over all workers: tokens are reserved before a request, and the bill replaces the reservation. */
import { and, eq, gt, lt, ne, sql } from "drizzle-orm";
import type { RateUse } from "../config/model-target.ts";
import type { Database, Queryable } from "./db.ts";
import { openRequests, rateWindows } from "./schema/index.ts";
import { excluded } from "./statements.ts";

/** Class of the advisory locks held per model key while a decision is made. Any number, the same in every version. */
const RATE_CLASS = 7_305_145;
/**
 * A lost worker's reservation is released after this time; a live worker renews three times as often. Chosen by
 * judgement: the next attempt of the same step, some seconds after the loss, replaces the lost reservation anyway.
 */
export const OPEN_MS = 60_000;
/** How many minutes of rows are kept, for people to read. */
const KEPT_MINUTES = 60;

export interface Reservation {
  readonly id: number;
  readonly sessionId: string;
  readonly key: string;
  readonly minute: number;
  readonly tokens: number;
}

/**
 * Reserves tokens for a request unless `refuse` objects. Requests for one key are decided one after the other, so that no two
 * use the same remaining allowance.
 * @param of.tokens that the request may take
 */
export function reserve<Refusal>(
  db: Database,
  of: Pick<Reservation, "sessionId" | "key" | "tokens">,
  refuse: (use: RateUse) => Refusal | undefined,
): Promise<Reservation | { readonly refusal: Refusal }> {
  return db.transaction(async (tx) => {
    await tx.execute(sql`select pg_advisory_xact_lock(${RATE_CLASS}, hashtext(${of.key}))`);
    const { minute, ...use } = await useOf(tx, of);
    const refusal = refuse(use);
    if (refusal !== undefined) return { refusal };
    await tx
      .insert(rateWindows)
      .values({ key: of.key, minute, requests: 1, tokens: of.tokens })
      .onConflictDoUpdate({
        target: [rateWindows.key, rateWindows.minute],
        set: {
          requests: sql`${rateWindows.requests} + 1`,
          tokens: sql`${rateWindows.tokens} + ${excluded(rateWindows.tokens)}`,
        },
      });
    const open = { key: of.key, minute, tokens: of.tokens, expiresAt: soon() };
    const [row] = await tx
      .insert(openRequests)
      .values({ sessionId: of.sessionId, ...open })
      .onConflictDoUpdate({ target: openRequests.sessionId, set: { ...open, id: excluded(openRequests.id) } })
      .returning({ id: openRequests.id });
    await tx
      .delete(rateWindows)
      .where(and(eq(rateWindows.key, of.key), lt(rateWindows.minute, minute - KEPT_MINUTES)));
    return { ...of, minute, id: row?.id ?? 0 };
  });
}

/** Current use by the database's clock, read after the wait for the lock. */
async function useOf(
  tx: Queryable,
  { key, sessionId }: Pick<Reservation, "key" | "sessionId">,
): Promise<RateUse & { readonly minute: number }> {
  const { rows } = await tx.execute<{ begun: number; ms: number }>(sql`
    select floor(seconds / 60)::float8 as begun, 1000 * (60 - mod(seconds, 60))::float8 as ms
    from (select extract(epoch from clock_timestamp()) as seconds) as clock`);
  const { begun: minute = 0, ms: msToNextMinute = 0 } = rows[0] ?? {};
  const [[used], [open]] = [
    await tx
      .select({ requests: rateWindows.requests, tokens: rateWindows.tokens })
      .from(rateWindows)
      .where(and(eq(rateWindows.key, key), eq(rateWindows.minute, minute))),
    await tx
      .select({
        open: sql<number>`count(*)::int`,
        openTokens: sql<number>`coalesce(sum(${openRequests.tokens}) filter (where ${openRequests.minute} = ${minute}), 0)::float8`,
      })
      .from(openRequests)
      .where(
        and(
          eq(openRequests.key, key),
          ne(openRequests.sessionId, sessionId),
          gt(openRequests.expiresAt, sql`clock_timestamp()`),
        ),
      ),
  ];
  return {
    minute,
    msToNextMinute,
    requests: used?.requests ?? 0,
    tokens: used?.tokens ?? 0,
    open: open?.open ?? 0,
    openTokens: open?.openTokens ?? 0,
  };
}

const soon = () => sql`clock_timestamp() + ${OPEN_MS} * interval '1 ms'`;

/** Marks the request as still open. */
export async function renew(db: Queryable, { id, sessionId }: Reservation): Promise<void> {
  await db
    .update(openRequests)
    .set({ expiresAt: soon() })
    .where(and(eq(openRequests.sessionId, sessionId), eq(openRequests.id, id)));
}

/**
 * Ends a request: tokens that it did not use are returned to its minute.
 * @param billed tokens; undefined if unknown, so that the whole reservation counts
 */
export async function settle(
  db: Queryable,
  { id, sessionId, key, minute, tokens }: Reservation,
  billed: number | undefined,
): Promise<void> {
  if (billed !== undefined)
    await db
      .update(rateWindows)
      .set({ tokens: sql`greatest(0, ${rateWindows.tokens} + ${billed - tokens})` })
      .where(and(eq(rateWindows.key, key), eq(rateWindows.minute, minute)));
  await db.delete(openRequests).where(and(eq(openRequests.sessionId, sessionId), eq(openRequests.id, id)));
}
