/** `longhaul context ID`: where the window goes. */
import { Command } from "commander";
import { openServices } from "../connection.ts";
import type { ContextReport } from "../context-report.ts";
import { exitCodes, noSuchSession, type ExitCode } from "../errors.ts";
import type { Look, Output, Style } from "../output.ts";
import { bar, percent, plural, tokens } from "../render/format.ts";
import { requireSession } from "../require-session.ts";

const BAR_CELLS = 50;

export function contextCommand(output: Output, done: (code: ExitCode) => void): Command {
  return new Command("context")
    .description("where the context window goes: system, tools, messages, output buffer, free")
    .argument("<id>", "session")
    .option("--json", "one JSON document")
    .action(async (id: string, flags: { json?: boolean }) => done(await context(id, flags, output)));
}

async function context(id: string, flags: { json?: boolean }, output: Output): Promise<ExitCode> {
  const { readContext } = await import("../context-report.ts");
  const services = await openServices();
  try {
    await requireSession(services, id);
    const report = await readContext(services.store.db, id);
    if (report === undefined) throw noSuchSession(id);
    if (flags.json === true) output.json(report, 2);
    else output.result(`${contextText(report, output.style)}\n`);
    return exitCodes.completed;
  } finally {
    await services.close();
  }
}

const looks: Record<keyof ContextReport["parts"], readonly [string, string, Look]> = {
  system: ["system prompt", "▓", "cyan"],
  tools: ["tools", "▒", "magenta"],
  messages: ["messages", "█", "green"],
  outputBuffer: ["output buffer", "▚", "yellow"],
  free: ["free", "░", "dim"],
};

/** The bar and the breakdown of 4.5, then the figures in force. */
export function contextText(report: ContextReport, style: Style): string {
  const names = Object.keys(looks) as (keyof ContextReport["parts"])[];
  const label = report.estimated ? " (estimated)" : "";
  const rows = names.map((name) => {
    const [title, sign, look] = looks[name];
    const amount = report.parts[name];
    return `  ${style(look, sign)} ${title.padEnd(14)}${tokens(amount).padStart(7)}  ${percent(amount, report.window).padStart(5)}`;
  });
  const { budget, messages } = report;
  return [
    `${style("bold", report.id)}  ${report.model}`,
    `${stackedBar(report, names, style)}  ${tokens(report.used)} of ${tokens(report.window)} tokens, ${percent(report.used, report.window)}${label}`,
    "",
    ...rows,
    "",
    `  in view: ${plural(messages.inView, "message")}, ${plural(messages.summaries, "summary", "summaries")}, ${plural(messages.pruned, "result")} hidden by prune`,
    `  compaction from ${tokens(budget.triggerTokens)} ${bar(report.used, budget.triggerTokens)} ${percent(report.used, budget.triggerTokens)} of the way; keeps ≤ ${budget.tailMessages} messages, ≤ ${tokens(budget.tailTokens)} tokens`,
    `  prune protects the newest ${tokens(budget.pruneProtectTokens)} and acts from ${tokens(budget.pruneMinimumTokens)} saved; ${tokens(report.prunable)} of tool results in view`,
    ...estimateLines(report),
  ].join("\n");
}

function stackedBar(
  report: ContextReport,
  names: readonly (keyof ContextReport["parts"])[],
  style: Style,
): string {
  let begin = 0;
  let drawn = 0;
  const pieces: string[] = [];
  for (const name of names) {
    const [, sign, look] = looks[name];
    begin += report.parts[name];
    // Rounded from the left edge on, so that the cells add up to the bar.
    const end =
      name === "free" ? BAR_CELLS : Math.min(BAR_CELLS, Math.round((begin / report.window) * BAR_CELLS));
    if (end > drawn) pieces.push(style(look, sign.repeat(end - drawn)));
    drawn = Math.max(drawn, end);
  }
  return pieces.join("");
}

function estimateLines(report: ContextReport): string[] {
  if (report.lastCalls.length === 0) return [];
  const calls = report.lastCalls.map(
    ({ step, estimated, actual, errorRatio, pure }) =>
      `    step ${step}: ${estimated} estimated${pure ? " without a bill" : ""}, ${actual} billed, ${errorRatio >= 0 ? "+" : ""}${(100 * errorRatio).toFixed(1)} %`,
  );
  return [`  last estimates (learnt ratio ${report.ratio.toFixed(3)}):`, ...calls];
}
