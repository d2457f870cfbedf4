/** `longhaul usage`: what sessions cost, also those that are deleted. */
import type { Command } from "commander";
import { readBudgetStates, type BudgetKind, type BudgetState } from "../../activities/store/budget-states.ts";
import {
  readUsage,
  spendingDay,
  USAGE_DIMENSIONS,
  type UsageDimension,
  type UsageRow,
} from "../../activities/store/spending.ts";
import type { Queryable } from "../../activities/store/db.ts";
import { dollars, tokens } from "../../activities/text/format.ts";
import { usageError } from "../console/errors.ts";
import { harmlessLine, table } from "../console/format.ts";
import type { Output } from "../console/output.ts";
import { withServices } from "../sessions/with-session.ts";

interface UsageFlags {
  readonly by: string;
  readonly since?: string;
  readonly until?: string;
  readonly json?: boolean;
}

export function usageCommand(command: Command, output: Output) {
  command
    .option(
      "--by <what>",
      `one or more of ${USAGE_DIMENSIONS.join(", ")}, with commas between them`,
      "person",
    )
    .option("--since <day>", "the first day, such as 2026-11-01 (default: the first of this month)")
    .option("--until <day>", "the last day (default: today)")
    .option("--json", "one JSON document");
  return (flags: UsageFlags) => {
    const by = parseDimensions(flags.by);
    const since = flags.since === undefined ? undefined : parseDay("--since", flags.since);
    const until = flags.until === undefined ? undefined : parseDay("--until", flags.until);
    return withServices(async ({ store: { db } }) => {
      const today = await spendingDay(db);
      const period = { since: since ?? `${today.slice(0, 7)}-01`, until: until ?? today };
      if (period.since > period.until)
        throw usageError(`The period ends (${period.until}) before it begins (${period.since}).`);
      const rows = await readUsage(db, by, { since: period.since, before: dayAfter(period.until) });
      // What is left is left now.
      const budgets = period.until < today ? undefined : await readBudgets(db, by, rows);
      if (flags.json === true) output.json({ ...period, by, ...documents(by, rows, budgets) }, 2);
      else if (rows.length === 0)
        output.note(`No model was asked from ${period.since} to ${period.until}.\n`);
      else output.result(`${usageTable(by, rows, output, budgets)}\n`);
    });
  };
}

/** @throws ClientError (usage) */
function parseDimensions(text: string): readonly UsageDimension[] {
  const names = text
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");
  const wrong = names.find((name) => !USAGE_DIMENSIONS.some((dimension) => dimension === name));
  if (names.length === 0 || wrong !== undefined)
    throw usageError(
      `--by ${wrong ?? text} is not something that usage can be told apart by.`,
      `One or more of: ${USAGE_DIMENSIONS.join(", ")}.`,
    );
  return [...new Set(names)] as UsageDimension[];
}

/** @throws ClientError (usage) for what is no day of the calendar */
function parseDay(flag: string, text: string): string {
  const day = text.trim();
  const atMs = Date.parse(`${day}T00:00:00Z`);
  const isDay =
    /^\d{4}-\d\d-\d\d$/.test(day) && !Number.isNaN(atMs) && new Date(atMs).toISOString().startsWith(day);
  if (!isDay) throw usageError(`${flag} ${text} is no day.`, "Write it as year-month-day: 2026-11-01.");
  return day;
}

const DAY_MS = 86_400_000;
const dayAfter = (day: string): string =>
  new Date(Date.parse(`${day}T00:00:00Z`) + DAY_MS).toISOString().slice(0, 10);

/** Budgets in their current periods. */
interface UsageBudgets {
  /** Of each row, by its name; nothing if rows are parts of what budgets are for. */
  readonly rows: ReadonlyMap<string, readonly BudgetState[]>;
  /** For everybody together. */
  readonly all: readonly BudgetState[];
}

async function readBudgets(
  db: Queryable,
  by: readonly UsageDimension[],
  rows: readonly UsageRow[],
): Promise<UsageBudgets> {
  const [kind] = by;
  const names = rows.map(({ of: [name = ""] }) => name);
  const isWhole = by.length === 1 && KINDS.some((other) => other === kind);
  return {
    rows: isWhole ? await readBudgetStates(db, kind as BudgetKind, names) : new Map(),
    all: (await readBudgetStates(db, "all", [""])).get("") ?? [],
  };
}

const KINDS: readonly BudgetKind[] = ["person", "tenant", "repo"];

const leftOf = ({ budget, usedUsd, reservedUsd }: BudgetState): number =>
  Math.max(0, budget.limitUsd - usedUsd - reservedUsd);

function documents(
  by: readonly UsageDimension[],
  rows: readonly UsageRow[],
  budgets: UsageBudgets | undefined,
) {
  const budgetRows = (states: readonly BudgetState[] = []) =>
    states.map((state) => ({
      period: state.budget.period,
      since: state.budget.since,
      before: state.budget.before,
      usd: state.budget.limitUsd,
      usedUsd: state.usedUsd,
      reservedUsd: state.reservedUsd,
      leftUsd: leftOf(state),
    }));
  const row = ({ of, ...figures }: UsageRow) => ({
    ...Object.fromEntries(by.map((dimension, index) => [dimension, of[index] || null])),
    ...figures,
    budgets: budgetRows(budgets?.rows.get(of[0] ?? "")),
  });
  return { rows: rows.map(row), budgets: budgetRows(budgets?.all) };
}

const MAX_NAME_CHARS = 60;

/** The one with the least left: it decides. */
function budgetCells(states: readonly BudgetState[] = []): string[] {
  const [strictest] = states.toSorted((one, other) => leftOf(one) - leftOf(other));
  if (strictest === undefined) return ["–", "–"];
  return [`${dollars(strictest.budget.limitUsd)} a ${strictest.budget.period}`, dollars(leftOf(strictest))];
}

/** @param rows of which there is at least one */
export function usageTable(
  by: readonly UsageDimension[],
  rows: readonly UsageRow[],
  { columns, style }: Pick<Output, "columns" | "style">,
  budgets: UsageBudgets = { rows: new Map(), all: [] },
): string {
  const total = (name: Exclude<keyof UsageRow, "of">) => rows.reduce((sum, row) => sum + row[name], 0);
  const all: UsageRow = {
    of: ["all", ...by.slice(1).map(() => "")],
    sessions: total("sessions"),
    calls: total("calls"),
    uncosted: total("uncosted"),
    input: total("input"),
    cached: total("cached"),
    output: total("output"),
    costUsd: total("costUsd"),
  };
  const cells = ({ of, sessions, calls, uncosted, input, cached, output, costUsd }: UsageRow) => [
    ...of.map((name) => harmlessLine(name, MAX_NAME_CHARS)),
    ...[sessions, calls].map(String),
    ...[input, cached, output].map(tokens),
    `${dollars(costUsd)}${uncosted > 0 ? ` + ${uncosted} calls without a price` : ""}`,
  ];
  const isBudgeted = budgets.rows.size + budgets.all.length > 0;
  const left = (states: readonly BudgetState[] | undefined) => (isBudgeted ? budgetCells(states) : []);
  const named = rows.map((row) => [
    ...cells({ ...row, of: row.of.map((name) => name || "–") }),
    ...left(budgets.rows.get(row.of[0] ?? "")),
  ]);
  const head = [...by.map((name) => name.toUpperCase()), "SESSIONS", "CALLS", "IN", "CACHED", "OUT", "COST"];
  const sums = rows.length > 1 || budgets.all.length > 0 ? [[...cells(all), ...left(budgets.all)]] : [];
  const heads = [...head, ...(isBudgeted ? ["BUDGET", "LEFT"] : [])];
  const [first = "", ...lines] = table([heads, ...named, ...sums], columns);
  return [style("dim", first), ...lines].join("\n");
}
