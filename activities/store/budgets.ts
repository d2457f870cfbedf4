/** Money that is reserved for requests under way, so that budgets hold whatever is asked at the same moment. */
import { and, eq, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type { MoneyBudget, Spender } from "../config/money-budgets.ts";
import type { Database, Queryable } from "./db.ts";
import { budgetAllowances, budgetReservations, budgetWarnings, sessions } from "./schema/index.ts";
import { spentUsd } from "./model-calls.ts";
import { MONEY_ZONE, spentUsdIn, TODAY } from "./spending.ts";
import { excluded } from "./statements.ts";

/** Class of the advisory locks held per budget while a decision is made. Any number, the same in every version. */
const BUDGET_CLASS = 7_305_146;
/**
 * A reservation whose session never went on is given up after this time. Chosen: longer than a model may take for an answer; the
 * session's next step or end replaces it by the lost request's estimated cost before that.
 */
const OPEN_SECONDS = 2 * 3_600;

/** For whom a session spends, and which day it is; a delegate spends for its parent. */
export async function findSpender(
  db: Queryable,
  sessionId: string,
): Promise<(Spender & { readonly today: string }) | undefined> {
  const [own, root] = [alias(sessions, "own"), alias(sessions, "root")];
  const [row] = await db
    .select({
      person: sql<string>`coalesce(${own.owner}, '')`,
      tenant: sql<string>`coalesce(${root.config}->>'tenant', '')`,
      repo: sql<string>`longhaul_repository(${root.config}->'repository'->>'url')`,
      today: TODAY,
    })
    .from(own)
    .innerJoin(root, sql`${root.id} = coalesce(${own.parentId}, ${own.id})`)
    .where(eq(own.id, sessionId));
  return row;
}

export interface MoneyRefusal {
  readonly budget: MoneyBudget;
  /** USD: billed, and reserved by other sessions. */
  readonly usedUsd: number;
  /** What people allowed the session beyond it, if they did. */
  readonly allowance?: Allowance | undefined;
}

/** USD that a session may spend in a budget's period whatever is left of it, and what it has used of that. */
interface Allowance {
  readonly usd: number;
  readonly usedUsd: number;
}

export interface ReservedMoney {
  readonly id: number;
  readonly sessionId: string;
  /** Budgets of which a share was passed that nobody was told of yet. */
  readonly near: readonly (MoneyRefusal & { readonly share: number })[];
}

/**
 * Reserves what a request may cost at most in all budgets, or in none. Decided one after the other for each budget. The bill replaces
 * it, in the statement that stores the bill.
 */
export function reserveMoney(
  db: Database,
  request: { readonly sessionId: string; readonly model: string; readonly usd: number },
  budgets: readonly MoneyBudget[],
): Promise<ReservedMoney | { readonly refused: MoneyRefusal }> {
  return db.transaction(async (tx) => {
    for (const scope of budgets.map(toWindow).toSorted())
      await tx.execute(sql`select pg_advisory_xact_lock(${BUDGET_CLASS}, hashtext(${scope}))`);
    const used: MoneyRefusal[] = [];
    for (const budget of budgets) {
      const usedUsd = await usedOf(tx, budget, request.sessionId);
      const hasRoom = usedUsd + request.usd <= budget.limitUsd;
      const allowance = hasRoom ? undefined : await allowanceOf(tx, budget, request.sessionId);
      const isAllowed = allowance !== undefined && allowance.usedUsd + request.usd <= allowance.usd;
      if (!hasRoom && !isAllowed) return { refused: { budget, usedUsd, allowance } };
      used.push({ budget, usedUsd });
    }
    const { sessionId, model, usd } = request;
    const row = { usd, model, scopes: budgets.map(toWindow), at: sql`clock_timestamp()` };
    const [reserved] = await tx
      .insert(budgetReservations)
      .values({ sessionId, ...row })
      .onConflictDoUpdate({
        target: budgetReservations.sessionId,
        set: { ...row, id: excluded(budgetReservations.id) },
      })
      .returning({ id: budgetReservations.id });
    return { id: reserved?.id ?? 0, sessionId, near: await newlyNear(tx, used) };
  });
}

/** Whether a request of the session has neither ended nor been billed. */
export async function hasReservedMoney(db: Queryable, sessionId: string): Promise<boolean> {
  const rows = await db
    .select({ id: budgetReservations.id })
    .from(budgetReservations)
    .where(eq(budgetReservations.sessionId, sessionId));
  return rows.length > 0;
}

/** The session has ended, so no request of it is under way. */
export async function releaseAllMoney(db: Queryable, sessionId: string): Promise<void> {
  await db.delete(budgetReservations).where(eq(budgetReservations.sessionId, sessionId));
}

/** The request ended without a bill. */
export async function releaseMoney(
  db: Queryable,
  { id, sessionId }: Pick<ReservedMoney, "id" | "sessionId">,
): Promise<void> {
  await db
    .delete(budgetReservations)
    .where(and(eq(budgetReservations.sessionId, sessionId), eq(budgetReservations.id, id)));
}

/** A budget in its current period. */
export const toWindow = ({ scope, since }: MoneyBudget): string => `${scope}, ${since}`;

/**
 * Lets a session, with its delegates, spend more than a budget has in its current period; nobody else may spend more by that. What it
 * spends counts in the budget all the same. Idempotent by the question.
 */
export async function allowMoney(
  tx: Queryable,
  allowed: {
    readonly sessionId: string;
    readonly question: string;
    readonly scope: string;
    readonly usd: number;
  },
): Promise<void> {
  const baseUsd = await spentUsd(tx, allowed.sessionId);
  await tx
    .insert(budgetAllowances)
    .values({ ...allowed, baseUsd })
    .onConflictDoNothing();
}

async function allowanceOf(
  tx: Queryable,
  budget: MoneyBudget,
  sessionId: string,
): Promise<Allowance | undefined> {
  const [own, member] = [alias(sessions, "own"), alias(sessions, "member")];
  const root = sql`(select coalesce(${own.parentId}, ${own.id}) from ${sessions} ${own} where ${own.id} = ${sessionId})`;
  const [row] = await tx
    .select({
      usd: sql<number | null>`sum(${budgetAllowances.usd})`,
      baseUsd: sql<number>`coalesce(min(${budgetAllowances.baseUsd}), 0)::float8`,
    })
    .from(budgetAllowances)
    .where(and(eq(budgetAllowances.sessionId, root), eq(budgetAllowances.scope, toWindow(budget))));
  if (row === undefined || row.usd === null) return undefined;
  const { rows } = await tx.execute<{ reserved: number }>(sql`
    select coalesce(sum(${budgetReservations.usd}), 0)::float8 as reserved from ${budgetReservations}
    join ${sessions} ${member} on ${member.id} = ${budgetReservations.sessionId}
    where coalesce(${member.parentId}, ${member.id}) = ${root} and ${member.id} <> ${sessionId} and ${IS_FRESH}`);
  const usedUsd = (await spentUsd(tx, sessionId)) - row.baseUsd + (rows[0]?.reserved ?? 0);
  return { usd: row.usd, usedUsd };
}

/** Reservations that are not given up. */
export const IS_FRESH = sql`${budgetReservations.at} > clock_timestamp() - ${OPEN_SECONDS} * interval '1 s'`;

/** How long it is until a day begins where money is counted, in ms, by the database's clock; at least 1. */
export async function untilDayMs(db: Queryable, day: string): Promise<number> {
  const begins = sql`${day}::date::timestamp at time zone ${MONEY_ZONE}`;
  const { rows } = await db.execute<{ ms: number }>(
    sql`select greatest(1, round(1000 * extract(epoch from ${begins} - clock_timestamp())))::float8 as ms`,
  );
  return rows[0]?.ms ?? 1;
}

/** In one statement: a bill that is stored meanwhile is seen with its reservation, or in place of it. */
async function usedOf(tx: Queryable, budget: MoneyBudget, sessionId: string): Promise<number> {
  const reserved = sql`(select coalesce(sum(${budgetReservations.usd}), 0) from ${budgetReservations}
    where ${budgetReservations.scopes} @> array[${toWindow(budget)}]::text[] and ${budgetReservations.sessionId} <> ${sessionId}
    and ${IS_FRESH})`;
  const { rows } = await tx.execute<{ used: number }>(
    sql`select (${spentUsdIn(budget)} + ${reserved})::float8 as used`,
  );
  return rows[0]?.used ?? 0;
}

async function newlyNear(tx: Queryable, used: readonly MoneyRefusal[]): Promise<ReservedMoney["near"]> {
  const near: (MoneyRefusal & { share: number })[] = [];
  for (const { budget, usedUsd } of used)
    for (const share of budget.warnAt) {
      if (usedUsd < share * budget.limitUsd) continue;
      const rows = await tx
        .insert(budgetWarnings)
        .values({ scope: budget.scope, periodStart: budget.since, share })
        .onConflictDoNothing()
        .returning({ share: budgetWarnings.share });
      if (rows.length > 0) near.push({ budget, usedUsd, share });
    }
  return near;
}
