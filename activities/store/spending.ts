/** What model calls cost, by day: counted by the database with each bill (its trigger on `model_calls`), kept without sessions. */
import { and, asc, eq, gte, lt, sql, type SQL } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";
import type { MoneyBudget } from "../config/money-budgets.ts";
import type { Queryable } from "./db.ts";
import { installation, spending } from "./schema/index.ts";

/** What spending can be told apart by. */
export const USAGE_DIMENSIONS = ["person", "repo", "tenant", "model", "purpose", "day"] as const;
export type UsageDimension = (typeof USAGE_DIMENSIONS)[number];

const COLUMNS: Readonly<Record<UsageDimension, PgColumn>> = {
  person: spending.owner,
  repo: spending.repo,
  tenant: spending.tenant,
  model: spending.model,
  purpose: spending.purpose,
  day: spending.day,
};

export interface UsageRow {
  /** One value for each dimension, in their order; empty if it is not known. */
  readonly of: readonly string[];
  /** Sessions that began in the period; delegates are their parents'. */
  readonly sessions: number;
  readonly calls: number;
  /** Calls whose cost is not known, and not in `costUsd`. */
  readonly uncosted: number;
  /** Tokens; `cached` is a part of `input`. */
  readonly input: number;
  readonly cached: number;
  readonly output: number;
  readonly costUsd: number;
}

/** Sums over a period, the dearest first. @param period days as `2026-11-01`: from the first, to before the second */
export async function readUsage(
  db: Queryable,
  by: readonly UsageDimension[],
  period: { readonly since: string; readonly before: string },
): Promise<UsageRow[]> {
  const groups = by.map((dimension) => COLUMNS[dimension]);
  const sum = (column: PgColumn) => sql<number>`coalesce(sum(${column}), 0)::float8`;
  const costUsd = sum(spending.costUsd);
  const rows = await db
    .select({
      of: sql<string[]>`array[${sql.join(
        groups.map((column) => sql`${column}::text`),
        sql`, `,
      )}]::text[]`,
      sessions: sum(spending.sessions),
      calls: sum(spending.calls),
      uncosted: sum(spending.uncosted),
      input: sum(spending.input),
      cached: sum(spending.cached),
      output: sum(spending.output),
      costUsd,
    })
    .from(spending)
    .where(and(gte(spending.day, period.since), lt(spending.day, period.before)))
    .groupBy(...groups)
    .orderBy(sql`${costUsd} desc`, ...groups.map((column) => asc(column)));
  return rows;
}

/** The zone in which money is counted. */
export const MONEY_ZONE = sql<string>`coalesce((select ${installation.zone} from ${installation}), 'UTC')`;

/** The day now, in that zone. */
export const TODAY = sql<string>`(now() at time zone ${MONEY_ZONE})::date::text`;

/** The same for a client, whose role may not read the zone: then by UTC. */
export async function spendingDay(db: Queryable): Promise<string> {
  const { rows } = await db.execute<{ may: boolean }>(
    sql`select has_table_privilege(${"installation"}, 'select') as may`,
  );
  if (rows[0]?.may !== true) return new Date().toISOString().slice(0, 10);
  const { rows: days } = await db.execute<{ today: string }>(sql`select ${TODAY} as today`);
  return days[0]?.today ?? "";
}

/** USD that a budget's period was billed so far, as a part of a statement. */
export function spentUsdIn({ per, of, since, before }: MoneyBudget): SQL {
  const { owner, tenant, repo, day, costUsd } = spending;
  const isFor = per === "all" ? sql`true` : eq({ person: owner, tenant, repo }[per], of);
  return sql`(select coalesce(sum(${costUsd}), 0) from ${spending} where ${day} >= ${since} and ${day} < ${before} and ${isFor})`;
}
