/** Where a session's window goes, by the same reckoning that triggers compaction. */
import { toolRegistry, toolSpecs } from "../activities/tools/index.ts";
import type { Budget } from "../activities/context/budget.ts";
import { viewSize } from "../activities/context/size.ts";
import { estimateText, estimateTools } from "../activities/context/tokens.ts";
import { budgetOf } from "../activities/run-policy.ts";
import { recentCalls, type CallEstimate } from "../activities/store/reading.ts";
import { loadRatio } from "../activities/store/model-calls.ts";
import type { Queryable } from "../activities/store/db.ts";
import { findSession } from "../activities/store/sessions.ts";
import { loadView } from "../activities/store/transcript.ts";
import { systemPrompt } from "../activities/system-prompt.ts";

/** Tokens throughout. */
export interface ContextReport {
  readonly id: string;
  readonly model: string;
  readonly window: number;
  /** The next request: system, tools and messages. */
  readonly used: number;
  readonly limit: number;
  /** True where no bill stands behind `used`. */
  readonly estimated: boolean;
  readonly parts: {
    readonly system: number;
    readonly tools: number;
    /** What is left of `used` for messages; never below 0. */
    readonly messages: number;
    readonly outputBuffer: number;
    readonly free: number;
  };
  readonly messages: { readonly inView: number; readonly summaries: number; readonly pruned: number };
  readonly prunable: number;
  /** Actual / estimated input of this model, as learnt so far. */
  readonly ratio: number;
  /** Figures in force. */
  readonly budget: Budget;
  /** What the last requests were estimated at and billed, newest first. */
  readonly lastCalls: readonly (CallEstimate & { readonly errorRatio: number })[];
}

const LAST_CALLS = 5;

/** Undefined where there is no such session. */
export async function readContext(db: Queryable, id: string): Promise<ContextReport | undefined> {
  const session = await findSession(db, id);
  if (session === undefined) return undefined;
  const { config } = session;
  const system = estimateText(systemPrompt(session.instructions));
  const tools = estimateTools(toolSpecs(toolRegistry));
  const [rows, learnt, calls] = await Promise.all([
    loadView(db, id),
    loadRatio(db, config.model),
    recentCalls(db, id, LAST_CALLS),
  ]);
  const ratio = learnt?.ratio ?? 1;
  const { next, prunableTokens } = viewSize({
    rows,
    prefixTokens: system + tools,
    ratio,
    windowTokens: config.contextWindow,
  });
  const budget = budgetOf(config, system + tools);
  return {
    id,
    model: config.model,
    window: config.contextWindow,
    used: next.tokens,
    limit: config.contextWindow,
    estimated: next.estimated,
    parts: breakdownOf(next.tokens, { system, tools, ratio }, budget),
    messages: {
      inView: rows.length,
      summaries: rows.filter((row) => row.kind === "summary").length,
      pruned: rows.filter((row) => row.prunedStep !== undefined).length,
    },
    prunable: prunableTokens,
    ratio,
    budget,
    lastCalls: calls.map((call) => ({
      ...call,
      errorRatio: call.actual === 0 ? 0 : (call.estimated - call.actual) / call.actual,
    })),
  };
}

/** System and tools are estimated, messages are what remains of the bill: so the parts add up. Pure. */
export function breakdownOf(
  used: number,
  prefix: { readonly system: number; readonly tools: number; readonly ratio: number },
  budget: Pick<Budget, "windowTokens" | "outputTokens">,
): ContextReport["parts"] {
  const system = Math.round(prefix.system * prefix.ratio);
  const tools = Math.round(prefix.tools * prefix.ratio);
  return {
    system,
    tools,
    messages: Math.max(0, used - system - tools),
    outputBuffer: budget.outputTokens,
    free: Math.max(0, budget.windowTokens - budget.outputTokens - used),
  };
}
