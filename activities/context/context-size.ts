/** How large the next request of a session is: one calculation for the workflow's facts, the display, lists and the log; counted by the provider where it decides. */
import { viewSize, type SizeInput, type ViewSize, requestSize } from "../transcript/size.ts";
import type { ContextSize, NextInputEstimate } from "../contract/request-size.ts";
import { calculatePruneFigures, windowMeasures } from "../config/budget.ts";
import { modelDeadlines } from "../config/run-policy.ts";
import type { Session } from "../store/sessions.ts";
import { runConfigSchema } from "../config/agent-config.ts";
import { buildPrefix, buildMessages, type Prefix } from "./request.ts";
import type { Queryable } from "../store/db.ts";
import { loadViewSizes } from "../store/load-view.ts";
import { loadSettings } from "../store/reading.ts";
import type { Budget } from "../contract/budget.ts";
import type { StoredMessage } from "../contract/message.ts";
import type { ActivityScope } from "../runtime/activity-scope.ts";
import type { AgentDeps } from "../runtime/deps.ts";

/** What determines a view's size, apart from its rows. */
export type Measure = Omit<SizeInput, "rows">;

/** @param prefix measured size of system prompt and tools */
export function toMeasure(
  { config, tokenRatio }: Pick<Session, "config" | "tokenRatio">,
  prefix: { readonly tokens: number },
): Measure {
  return {
    prefixTokens: prefix.tokens,
    ratio: tokenRatio?.ratio ?? 1,
    oneRequestTokens: windowMeasures(config).oneRequestTokens,
    pruneProtectTokens: calculatePruneFigures(config).pruneProtectTokens,
    model: config.model,
  };
}

/** A view's size as the workflow holds it. */
export function toContextSize(rows: SizeInput["rows"], measure: Measure): ContextSize {
  return sizeFacts(viewSize({ rows, ...measure }));
}

export function sizeFacts({ next, prunableTokens, growthTokens, ratio }: ViewSize): ContextSize {
  // Four places are exact to a token in ten thousand, and short in the history.
  const known = Math.round(ratio * 10_000) / 10_000;
  return {
    used: next.tokens,
    estimated: next.estimated,
    prunable: prunableTokens,
    growth: growthTokens,
    ratio: known === 1 ? undefined : known,
  };
}

/** By id; a session whose configuration is of another version has no entry. */
export async function sessionSizes(
  db: Queryable,
  ids: readonly string[],
): Promise<Map<string, NextInputEstimate>> {
  if (ids.length === 0) return new Map();
  const [known, views] = await Promise.all([loadSettings(db, ids), loadViewSizes(db, ids)]);
  const sizes = new Map<string, NextInputEstimate>();
  for (const { id, config, tokenRatio, prompt } of known) {
    const parsed = runConfigSchema.safeParse(config);
    if (!parsed.success) continue;
    const prefix = buildPrefix({ system: prompt, config: parsed.data });
    const measure = toMeasure({ config: parsed.data, tokenRatio }, prefix);
    sizes.set(id, requestSize({ rows: views.get(id) ?? [], ...measure }).next);
  }
  return sizes;
}

/**
 * How far an estimate may be from a size and still be on the wrong side of it: if it continues a bill, and without one. Source:
 * requirement 9 (p95 of the error 3 %; pure estimates up to 20 % on tool output).
 */
const ERROR = { billed: 0.03, pure: 0.2 };

function mayBeWrong({ used, estimated }: ContextSize, sizeTokens: number): boolean {
  return Math.abs(used - sizeTokens) <= sizeTokens * (estimated ? ERROR.pure : ERROR.billed);
}

interface Counting {
  readonly deps: Pick<AgentDeps, "model" | "store">;
  readonly scope: ActivityScope;
  readonly session: Session;
  readonly prefix: Prefix;
  readonly rows: readonly StoredMessage[];
}

/** Before a request is sent: counted if the estimate is so near the largest one that the model takes that it may be wrong. */
export async function sizeAtLimit(
  counting: Counting,
  context: ContextSize,
  { limitTokens }: Budget,
): Promise<ContextSize> {
  return mayBeWrong(context, limitTokens) ? counted(counting, context) : context;
}

/**
 * Before a summary is made because the trigger is reached: counted if the estimate continues no bill. Where it does, the error is
 * worth less than a step, unless the trigger is the largest request itself.
 */
export async function sizeAtTrigger(
  counting: Counting,
  context: ContextSize,
  { triggerTokens, limitTokens }: Budget,
): Promise<ContextSize> {
  const decides = context.estimated || triggerTokens >= limitTokens;
  return decides && context.used >= triggerTokens && mayBeWrong(context, triggerTokens)
    ? counted(counting, context)
    : context;
}

async function counted(
  { deps, scope, session: { id, config }, prefix, rows }: Counting,
  context: ContextSize,
): Promise<ContextSize> {
  if (deps.model.count === undefined) return context;
  const { messages } = await buildMessages(deps.store.db, rows, config.input, config.model);
  const tokens = await deps.model.count(
    {
      target: config,
      system: prefix.system,
      messages,
      tools: prefix.tools,
      maxOutputTokens: config.maxOutput,
      cacheKey: id,
      deadlines: modelDeadlines(config, scope.elapsedMs()),
    },
    scope.signal,
  );
  return tokens === undefined ? context : { ...context, used: tokens, estimated: false };
}
