/** What is left of the operator's budgets, for people. A worker keeps to its own policy, which it stores here for them to read. */
import { and, gte, inArray, lt, sql } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";
import { budgetsFor, budgetsSchema, type MoneyBudget } from "../config/money-budgets.ts";
import { toWindow, IS_FRESH } from "./budgets.ts";
import type { Queryable } from "./db.ts";
import { readInstallation } from "./installation.ts";
import { budgetReservations, installation, spending } from "./schema/index.ts";
import { spendingDay } from "./spending.ts";

type Budgets = ReturnType<typeof budgetsSchema.parse>;

interface MoneyRules {
  readonly budgets?: Budgets | undefined;
  /** In which days, weeks and months begin; default UTC. */
  readonly budgetZone?: string | undefined;
}

/** Days are counted in this zone from now on, and people see these budgets. Call it when a worker starts. */
export async function setMoneyRules(db: Queryable, { budgets, budgetZone }: MoneyRules): Promise<void> {
  if (budgets === undefined) {
    // The zone stays: what was counted by it is not counted again.
    await db
      .update(installation)
      .set({ budgets: null })
      .where(sql`${installation.budgets} is not null`);
    return;
  }
  await readInstallation(db);
  await db.update(installation).set({ zone: budgetZone ?? "UTC", budgets });
}

/** Whose budgets are asked for. */
export type BudgetKind = MoneyBudget["per"];

/** A budget in its current period. */
export interface BudgetState {
  readonly budget: MoneyBudget;
  /** USD that were billed, and that open requests may cost. */
  readonly usedUsd: number;
  readonly reservedUsd: number;
}

/**
 * The budgets of one kind, as the worker has them that started last, by whose they are; none for a client's role, which may not read
 * them.
 * @param names of people, tenants or repositories, as in `spending`; for `all`, the empty one
 */
export async function readBudgetStates(
  db: Queryable,
  per: BudgetKind,
  names: readonly string[],
): Promise<ReadonlyMap<string, readonly BudgetState[]>> {
  const budgets = await storedBudgets(db);
  const today = await spendingDay(db);
  const nobody = { person: "", tenant: "", repo: "" };
  const all = names.flatMap((name) =>
    budgetsFor(budgets, per === "all" ? nobody : { ...nobody, [per]: name }, today).filter(
      (budget) => budget.per === per,
    ),
  );
  const reserved = await readReserved(db, all.map(toWindow));
  const states = new Map<string, BudgetState[]>();
  for (const period of new Set(all.map(({ period }) => period))) {
    const some = all.filter((budget) => budget.period === period);
    const used = await readUsed(db, per, some);
    for (const budget of some) {
      const state = {
        budget,
        usedUsd: used.get(budget.of) ?? 0,
        reservedUsd: reserved.get(toWindow(budget)) ?? 0,
      };
      states.set(budget.of, [...(states.get(budget.of) ?? []), state]);
    }
  }
  return states;
}

async function storedBudgets(db: Queryable): Promise<Budgets> {
  const { rows } = await db.execute<{ may: boolean }>(
    sql`select has_table_privilege(${"installation"}, 'select') as may`,
  );
  if (rows[0]?.may !== true) return [];
  const [row] = await db.select({ budgets: installation.budgets }).from(installation);
  // A newer worker may have budgets of kinds that are not known here.
  return budgetsSchema.safeParse(row?.budgets ?? []).data ?? [];
}

async function readReserved(db: Queryable, windows: readonly string[]): Promise<ReadonlyMap<string, number>> {
  if (windows.length === 0) return new Map();
  const rows = await db
    .select({
      window: sql<string>`unnest(${budgetReservations.scopes})`,
      usd: sql<number>`sum(${budgetReservations.usd})::float8`,
    })
    .from(budgetReservations)
    .where(IS_FRESH)
    .groupBy(sql`1`);
  return new Map(rows.map(({ window, usd }) => [window, usd]));
}

/** Of one kind and period. */
async function readUsed(
  db: Queryable,
  per: BudgetKind,
  budgets: readonly MoneyBudget[],
): Promise<ReadonlyMap<string, number>> {
  const [first] = budgets;
  if (first === undefined) return new Map();
  const columns: Readonly<Record<Exclude<BudgetKind, "all">, PgColumn>> = {
    person: spending.owner,
    tenant: spending.tenant,
    repo: spending.repo,
  };
  const column = per === "all" ? undefined : columns[per];
  const names = budgets.map(({ of }) => of);
  const rows = await db
    .select({
      of: sql<string>`${column ?? sql`''`}`,
      usd: sql<number>`coalesce(sum(${spending.costUsd}), 0)::float8`,
    })
    .from(spending)
    .where(
      and(
        gte(spending.day, first.since),
        lt(spending.day, first.before),
        column === undefined ? undefined : inArray(column, names),
      ),
    )
    .groupBy(...(column === undefined ? [] : [column]));
  return new Map(rows.map(({ of, usd }) => [of, usd]));
}
