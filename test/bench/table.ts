/** One row a figure: what was measured, against which goal, with which verdict. Pure. */
import { median } from "./stats.ts";

export interface Goal {
  /** What the goal is about: the figure itself, or its ratio to the yardstick. */
  readonly of: "value" | "ratio";
  readonly atMost?: number;
  readonly atLeast?: number;
}

export interface Figure {
  readonly name: string;
  /** Undefined if it could not be decided. */
  readonly value: number | undefined;
  readonly unit: string;
  /** How many samples stand behind it. */
  readonly n: number;
  /** Against the yardstick of the same run. */
  readonly ratio?: number;
  readonly goal?: Goal | undefined;
  readonly note?: string | undefined;
}

/** A goal for the figure itself. */
export const atMost = (limit: number): Goal => ({ of: "value", atMost: limit });
/** A goal for its ratio to the yardstick. */
export const ratioAtMost = (limit: number): Goal => ({ of: "ratio", atMost: limit });

/** The middle of several times in ms. */
export const middleOf = (name: string, times: readonly number[], more: Partial<Figure> = {}): Figure => ({
  name,
  value: median(times),
  unit: "ms",
  n: times.length,
  ...more,
});

/** The same with the slowest of them in its note. */
export const middleAndSlowest = (name: string, times: readonly number[], goal: Goal): Figure =>
  middleOf(name, times, { goal, note: `slowest ${Math.max(...times).toFixed(0)} ms` });

export type Verdict = "meets" | "does not" | "-";

export function verdictOf({ value, ratio, goal }: Figure): Verdict {
  if (goal === undefined) return "-";
  const measured = goal.of === "ratio" ? ratio : value;
  return measured !== undefined && isMet(measured, goal) ? "meets" : "does not";
}

function isMet(measured: number, { atMost, atLeast }: Goal): boolean {
  return measured <= (atMost ?? Infinity) && measured >= (atLeast ?? -Infinity);
}

const HEAD = ["figure", "measured", "x yardstick", "goal", "verdict", "n", "note"];

/** The table as Markdown, aligned. */
export function renderTable(figures: readonly Figure[]): string {
  const rows = [HEAD, ...figures.map(cells)];
  const widths = HEAD.map((_, column) => Math.max(...rows.map((row) => (row[column] ?? "").length)));
  const line = (row: readonly string[]) =>
    `| ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(" | ")} |`;
  const rule = `|${widths.map((width) => "-".repeat(width + 2)).join("|")}|`;
  const [head, ...body] = rows.map(line);
  return [head, rule, ...body].join("\n");
}

function cells(figure: Figure): string[] {
  const { name, value, unit, n, ratio, goal, note } = figure;
  return [
    name,
    value === undefined ? "" : `${format(value)} ${unit}`,
    ratio === undefined ? "" : format(ratio),
    goal === undefined ? "" : goalText(goal, unit),
    verdictOf(figure),
    n === 0 ? "" : String(n),
    note ?? "",
  ];
}

function goalText({ of, atMost, atLeast }: Goal, unit: string): string {
  const limit = atMost === undefined ? `>= ${format(atLeast ?? 0)}` : `<= ${format(atMost)}`;
  return `${limit} ${of === "ratio" ? "x" : unit}`;
}

function format(value: number): string {
  if (Number.isNaN(value)) return "?";
  const size = Math.abs(value);
  if (size >= 100) return value.toFixed(0);
  return size >= 10 ? value.toFixed(1) : value.toFixed(2);
}
