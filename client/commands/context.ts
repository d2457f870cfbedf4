/** `longhaul context ID`: the use of the window. */
import type { Command } from "commander";
import {
  BREAKDOWN_PARTS,
  toBar,
  type Breakdown,
  type BreakdownPart,
  type CappedPart,
} from "../../activities/contract/request-size.ts";
import type { ContextReport } from "../../activities/context/context-report.ts";
import { noSuchSession } from "../console/errors.ts";
import type { TextStyle, Output, Style } from "../console/output.ts";
import { bar } from "../console/format.ts";
import { percent, plural, tokens } from "../../activities/text/format.ts";
import { SESSION, withSession } from "../sessions/with-session.ts";

const BAR_CELLS = 50;

export function contextCommand(command: Command, output: Output) {
  command.argument("<id>", SESSION).option("--json", "one JSON document");
  return (reference: string, flags: { readonly json?: boolean }) =>
    withSession(reference, async ({ store }, { id }) => {
      const { readContext } = await import("../../activities/context/context-report.ts");
      const report = await readContext(store.db, id);
      if (report === undefined) throw noSuchSession(id);
      if (flags.json === true) output.json(report, 2);
      else output.result(`${contextBreakdown(report, output.style)}\n`);
    });
}

const partStyles: Record<BreakdownPart, TextStyle> = {
  system: "cyan",
  tools: "magenta",
  messages: "green",
  free: "dim",
  outputBuffer: "yellow",
};

/** The origin of each part's figure; the free part is neither estimated nor calculated. */
const origins: Record<BreakdownPart, string> = {
  system: "(estimated)",
  tools: "(estimated)",
  messages: "(back-calculated)",
  free: "",
  outputBuffer: "",
};

/** The bar and the breakdown of 4.5 with the parts of the total, then the figures in force. */
export function contextBreakdown(report: ContextReport, style: Style): string {
  const label = report.estimated ? " (estimated)" : "";
  const rows = BREAKDOWN_PARTS.map(([name, title, sign]) => {
    const amount = report.parts[name];
    const origin = style("dim", origins[name]);
    return `  ${style(partStyles[name], sign)} ${title.padEnd(14)}${tokens(amount).padStart(7)}  ${percent(amount, report.window).padStart(5)}  ${origin}`.trimEnd();
  });
  const { budget, messages } = report;
  return [
    `${style("bold", report.id)}  ${report.model}`,
    `${stackedBar(report.parts, style)}  ${tokens(report.used)} of ${tokens(report.window)} tokens, ${percent(report.used, report.window)}${label}`,
    "",
    ...rows,
    ...report.capped.map((capped) => `  ${style("yellow", `! ${cappedLine(capped, report)}`)}`),
    "",
    `  ${basisLine(report)}`,
    `  in view: ${plural(messages.inView, "message")}, ${plural(messages.summaries, "summary", "summaries")}, ${plural(messages.pruned, "result")} hidden by prune`,
    `  compaction starts at ${tokens(budget.triggerTokens)}: ${bar(report.used, budget.triggerTokens)} ${percent(report.used, budget.triggerTokens)} of that; keeps ≤ ${budget.tailMessages} messages, ≤ ${tokens(budget.tailTokens)} tokens`,
    `  prune protects the newest ${tokens(budget.pruneProtectTokens)} and acts when it frees ${tokens(budget.pruneMinimumTokens)} or more; ${tokens(report.prunable)} of tool results are in view`,
    ...estimateLines(report),
  ].join("\n");
}

function basisLine({ basis, used, ratio }: ContextReport): string {
  if (basis === null) {
    return `basis: ${used} (estimated) from the text in view, calibration factor ${ratio.toFixed(3)}: the provider's counts do not cover this view`;
  }
  const { lastInput, lastOutput, lastReasoning, newSince } = basis;
  const reasoning = lastReasoning > 0 ? ` (${lastReasoning} of it reasoning)` : "";
  return `basis: last input ${lastInput} + last output ${lastOutput}${reasoning} + new since ${newSince} (estimated) = ${used}`;
}

function cappedLine({ part, wanted }: CappedPart, { parts }: ContextReport): string {
  const title = BREAKDOWN_PARTS.find(([name]) => name === part)?.[1] ?? part;
  return wanted < 0
    ? `${title} come out at ${wanted} and are shown as 0: system prompt and tools are estimated too high`
    : `${title} would be ${wanted} and are shown as ${parts[part]}: the request fills the window`;
}

function stackedBar(parts: Breakdown, style: Style): string {
  const signs = new Map(BREAKDOWN_PARTS.map(([name, , sign]) => [name, sign]));
  return toBar(parts, BAR_CELLS)
    .filter(([, cells]) => cells > 0)
    .map(([name, cells]) => style(partStyles[name], (signs.get(name) ?? "").repeat(cells)))
    .join("");
}

function estimateLines(report: ContextReport): string[] {
  if (report.lastCalls.length === 0) return [];
  const calls = report.lastCalls.map(
    ({ step, estimated, actual, errorRatio, pure }) =>
      `    step ${step}: ${estimated} estimated${pure ? " without a bill" : ""}, ${actual} billed, ${errorRatio >= 0 ? "+" : ""}${(100 * errorRatio).toFixed(1)} %`,
  );
  return [`  last estimates (calibration factor ${report.ratio.toFixed(3)}):`, ...calls];
}
