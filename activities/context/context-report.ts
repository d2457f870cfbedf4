/** What fills a session's window, by the same calculation that triggers compaction. */
import { toBreakdown, type Breakdown, type CappedPart, estimateError } from "../contract/request-size.ts";
import { viewSize, type SizeBasis } from "../transcript/size.ts";
import type { Budget } from "../contract/budget.ts";
import { toMeasure, sizeFacts } from "./context-size.ts";
import { buildPrefix, prefixShares } from "./request.ts";
import { calculateBudget } from "../config/budget.ts";
import { recentCalls, type CallEstimate } from "../store/reading.ts";
import type { Database } from "../store/db.ts";
import { findSession } from "../store/sessions.ts";
import { loadView } from "../store/load-view.ts";

/** Tokens throughout. */
export interface ContextReport {
  readonly id: string;
  readonly model: string;
  readonly window: number;
  /** The next request: system, tools and messages. */
  readonly used: number;
  readonly limit: number;
  /** True if `used` is not based on a bill. */
  readonly estimated: boolean;
  /** What `used` is made of; null if it is an estimate alone. */
  readonly basis:
    | (SizeBasis & {
        /** Of the last output. */
        readonly lastReasoning: number;
      })
    | null;
  /** System and tools are estimated, messages worked out from `used`. */
  readonly parts: Breakdown;
  /** Parts that are shown with a value other than the calculated one. */
  readonly capped: readonly CappedPart[];
  readonly messages: { readonly inView: number; readonly summaries: number; readonly pruned: number };
  readonly prunable: number;
  /** Calibration factor of this model so far: actual / estimated input. */
  readonly ratio: number;
  /** Figures in force. */
  readonly budget: Budget;
  /** What the last requests were estimated at and billed, newest first. */
  readonly lastCalls: readonly (CallEstimate & { readonly errorRatio: number })[];
}

const LAST_CALLS = 5;

/** Undefined if there is no such session. */
export async function readContext(db: Database, id: string): Promise<ContextReport | undefined> {
  const session = await findSession(db, id);
  if (session === undefined) return undefined;
  const { config } = session;
  const prefix = buildPrefix(session);
  const [rows, calls] = await Promise.all([loadView(db, id), recentCalls(db, id, LAST_CALLS)]);
  const measure = toMeasure(session, prefix);
  const { ratio } = measure;
  const size = viewSize({ rows, ...measure });
  const { used, estimated, prunable } = sizeFacts(size);
  const budget = calculateBudget(config, prefix.tokens);
  const { parts, capped } = toBreakdown({ ...budget, used, ...prefixShares(prefix, ratio) });
  return {
    id,
    model: config.model,
    window: budget.contextWindow,
    used,
    limit: budget.contextWindow,
    estimated,
    basis: size.basis === undefined ? null : { ...size.basis, lastReasoning: reasoningOf(size.basis, calls) },
    parts,
    capped,
    messages: {
      inView: rows.length,
      summaries: rows.filter((row) => row.kind === "summary").length,
      pruned: rows.filter((row) => row.prunedStep !== undefined).length,
    },
    prunable,
    ratio,
    budget,
    lastCalls: calls.map((call) => ({
      ...call,
      errorRatio: estimateError(call.estimated, call.actual) ?? 0,
    })),
  };
}

/** Reasoning tokens of the billed answer on which the size is based. */
function reasoningOf({ lastInput, lastOutput }: SizeBasis, calls: readonly CallEstimate[]): number {
  return calls.find((call) => call.actual === lastInput && call.output === lastOutput)?.reasoning ?? 0;
}
