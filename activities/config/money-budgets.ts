/** Budgets of the operator's policy: how much money may be spent for a person, a tenant or a repository in a day, week or month. */
import { z } from "zod";

const PERIODS = ["day", "week", "month"] as const;
type Period = (typeof PERIODS)[number];

const budgetSchema = z
  .strictObject({
    per: z.enum(["person", "tenant", "repo", "all"]),
    /** One of them; such a budget replaces the general one of the same kind and period. */
    of: z.string().min(1).max(300).optional(),
    period: z.enum(PERIODS),
    usd: z.number().positive(),
    /** Shares at which people are told. Default: as budget alarms usually do. */
    warnAt: z.array(z.number().gt(0).lt(1)).max(10).default([0.8]),
    /** Models without a price: they are refused, or not counted. */
    unpriced: z.enum(["refuse", "allow"]).default("refuse"),
  })
  .refine(({ per, of }) => per !== "all" || of === undefined, {
    error: "of is not for per: all",
    path: ["of"],
  })
  .refine(({ per, of }) => per !== "repo" || of === undefined || toRepositoryName(of).includes("/"), {
    error: "a repository's host and path, such as github.com/acme/app",
    path: ["of"],
  });

/** As the database names repositories, also if an operator writes the address. */
function toRepositoryName(of: string): string {
  return of
    .toLowerCase()
    .replace(/^[a-z+]+:\/\//, "")
    .replace(/^[^/@]*@/, "")
    .replace(/(\.git)?\/*$/, "");
}

export const budgetsSchema = z.array(budgetSchema).max(1_000);

/** The policy's rules on money. */
export const moneyRules = {
  /** Money that may be spent in a period: all that match a session apply. */
  budgets: budgetsSchema.optional(),
  /** At a budget's end: a person is asked for more, or the session ends. A session where nobody is asked ends in both cases. */
  onBudget: z.enum(["ask", "stop"]).default("ask"),
  /** Who may answer that, by name, besides the session's owner. */
  approvers: z.array(z.string().trim().min(1).max(100)).max(100).optional(),
  /** In which days, weeks and months begin; default UTC. */
  budgetZone: z.string().refine(isZone, "a time zone such as Europe/Berlin").optional(),
};

function isZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat("en", { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

/** For whom money is spent. Those without an owner count as one person. */
export interface Spender {
  readonly person: string;
  /** Empty if there is none. */
  readonly tenant: string;
  readonly repo: string;
}

/** A budget that applies to a session, in its current period. */
export interface MoneyBudget {
  /** For people, and as its key: `person ann, month`. */
  readonly scope: string;
  readonly per: "person" | "tenant" | "repo" | "all";
  readonly of: string;
  readonly period: Period;
  readonly limitUsd: number;
  /** Days: the first one, and the first one after it. */
  readonly since: string;
  readonly before: string;
  readonly warnAt: readonly number[];
  readonly unpriced: "refuse" | "allow";
}

/** All that apply to a session, in the policy's order. @param today as `2026-11-27`, in the policy's zone */
export function budgetsFor(
  budgets: z.infer<typeof budgetsSchema>,
  spender: Spender,
  today: string,
): MoneyBudget[] {
  const valueOf = (per: MoneyBudget["per"]) => (per === "all" ? "" : spender[per]);
  const isNamed = (budget: (typeof budgets)[number]) => budget.of !== undefined;
  const matching = budgets.filter(({ per, of }) => {
    if (of === undefined) return per === "all" || per === "person" || valueOf(per) !== "";
    return (per === "repo" ? toRepositoryName(of) : of) === valueOf(per);
  });
  return matching
    .filter(
      (budget) =>
        isNamed(budget) ||
        !matching.some(
          (other) => isNamed(other) && other.per === budget.per && other.period === budget.period,
        ),
    )
    .map(({ per, period, usd, warnAt, unpriced }) => {
      const of = valueOf(per);
      const named = of === "" ? "people without a name" : `${per} ${of}`;
      const whose = per === "all" ? "all" : named;
      return {
        scope: `${whose}, ${period}`,
        per,
        of,
        period,
        limitUsd: usd,
        warnAt,
        unpriced,
        ...toPeriod(period, today),
      };
    });
}

const DAY_MS = 86_400_000;
const toDay = (atMs: number): string => new Date(atMs).toISOString().slice(0, 10);

/** Weeks begin on Mondays. */
export function toPeriod(period: Period, today: string): Pick<MoneyBudget, "since" | "before"> {
  const atMs = Date.parse(`${today}T00:00:00Z`);
  const at = new Date(atMs);
  if (period === "day") return { since: today, before: toDay(atMs + DAY_MS) };
  if (period === "week") {
    const mondayMs = atMs - ((at.getUTCDay() + 6) % 7) * DAY_MS;
    return { since: toDay(mondayMs), before: toDay(mondayMs + 7 * DAY_MS) };
  }
  const month = (offset: number) => toDay(Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + offset, 1));
  return { since: month(0), before: month(1) };
}
