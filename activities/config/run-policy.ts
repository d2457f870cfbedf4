/** From a run's configuration to the figures the workflow decides by. Pure. */
import type { RunConfig } from "./agent-config.ts";
import { questionSettings } from "./question-settings.ts";
import { budgetFor, type Budget } from "../contract/budget.ts";
import type { RunPolicy } from "../contract/run-policy.ts";
import { strategies, type StrategyTrigger } from "../contract/strategies.ts";
import { precedenceOf } from "./precedence.ts";
import { setupOf, setupTimeoutOf } from "./setup-settings.ts";
import { defaultLimits } from "./tool-limits.ts";
import type { ToolLimits } from "../contract/tools.ts";

/** As many as the failed compactions that trip the breaker. Source: requirement 2.9. */
const MAX_FUTILE_ROUNDS = 3;

/**
 * Share of the usable window at which a session is compacted that is taken up with nothing of it cached: of a small window,
 * where a round forgets more, and of one from 128,000 tokens on. Source: measured on a recorded session (decision 0034).
 */
const RETURN_TRIGGER = { small: 0.4, large: 0.25 };
const LARGE_WINDOW_TOKENS = 128_000;

/**
 * Tokens of the usable window that count for when to compact, unless a share is configured: in a larger one each step pays
 * for what it hardly needs. Source: measured on the same session (decision 0034).
 */
const ECONOMIC_TOKENS = 200_000;

/** Room for a tool's own clean-up beyond its timeout. */
const TOOL_GRACE_MS = 60_000;

/** Budget of the run's model. `prefixTokens` is what system prompt and tools were measured at. */
export function budgetOf(config: RunConfig, prefixTokens: number): Budget {
  const { options } = config.context;
  const trigger = triggerOf(config);
  const { small, large } = RETURN_TRIGGER;
  const usual = config.contextWindow < LARGE_WINDOW_TOKENS ? small : large;
  // A session that compacts on a person's word alone does so on a return as well.
  const returnRatio = options.returnTrigger ?? (trigger === "manual" ? undefined : usual);
  const isConfigured = (options.trigger ?? config.headroom) !== undefined || typeof trigger !== "number";
  return budgetFor(config.contextWindow, {
    triggerRatio: typeof trigger === "number" ? trigger : 1,
    ...(returnRatio === undefined ? {} : { returnRatio }),
    ...(isConfigured ? {} : { triggerOfTokens: ECONOMIC_TOKENS }),
    ...(options.returnTrigger === undefined ? { returnOfTokens: ECONOMIC_TOKENS } : {}),
    prefixTokens,
    maxOutputTokens: config.maxOutput,
    ...(config.maxInput === undefined ? {} : { maxInputTokens: config.maxInput }),
    ...(options.keepMessages === undefined ? {} : { tailMessages: options.keepMessages }),
    pruneProtectTokens: options.pruneProtect,
    pruneMinimumTokens: options.pruneMinimum,
  });
}

/** What starts a compaction in this run: the configuration's word, else the strategy's. */
function triggerOf({ context, headroom }: RunConfig): StrategyTrigger {
  if (context.options.auto === false) return "manual";
  return context.options.trigger ?? headroom ?? strategies[context.strategy].trigger;
}

/** Assumed characters per token if text is cut before it is counted: cautious, tool output has 2.8–3.1. */
const CHARS_PER_TOKEN = 3;

/**
 * Limits of a tool within a window: one result never takes more than the tail that compaction keeps, or nothing could
 * be compacted away from a live turn.
 */
export function toolLimitsOf(config: RunConfig, name: string): ToolLimits {
  const limits = defaultLimits(name, config.tools[name]);
  const room = budgetOf(config, 0).tailTokens * CHARS_PER_TOKEN;
  return { ...limits, maxChars: Math.min(limits.maxChars, room) };
}

/**
 * Taken off an attempt's timeout for storing what came and reporting the end, in ms; of short timeouts a tenth. Source: ours,
 * some ten times what a store that is up needs.
 */
const REPORT_MS = 15_000;

/** Deadlines of a request that an attempt makes. @param elapsedMs since the attempt began */
export function modelDeadlines({ limits }: Pick<RunConfig, "limits">, elapsedMs: number): Deadlines {
  const { modelTimeout } = limits;
  return {
    connectMs: limits.connectTimeout,
    firstTokenMs: limits.firstTokenTimeout,
    silenceMs: limits.silenceTimeout,
    answerMs: Math.max(1, modelTimeout - Math.min(REPORT_MS, modelTimeout / 10) - elapsedMs),
  };
}

export function runPolicyOf(
  config: RunConfig,
  prefixTokens: number,
  fixed: Pick<
    RunPolicy,
    | "searchAttributes"
    | "taskQueues"
    | "hostTimeoutMs"
    | "prefix"
    | "heartbeatTimeoutMs"
    | "git"
    | "delegates"
    | "takesTools"
    | "notifies"
    | "trace"
  > & {
    /** The longest that one of the operator's own tools may take. */
    readonly ownToolMs?: number;
  },
): RunPolicy {
  const { ownToolMs = 0, ...asItIs } = fixed;
  const setup = setupOf(config.sandbox);
  return {
    model: config.model,
    maxSteps: config.limits.maxSteps,
    budget: budgetOf(config, prefixTokens),
    prune: config.context.options.prune ?? "auto",
    ...(triggerOf(config) === "manual" ? { autoCompaction: false } : {}),
    ...(config.fallback === undefined
      ? {}
      : { fallbacks: config.fallback.length, returnAfterMs: config.limits.returnAfter }),
    ...(config.limits.maxCostUsd === undefined ? {} : { maxCostUsd: config.limits.maxCostUsd }),
    ...(config.limits.deadline === undefined
      ? {}
      : { deadlineMs: config.limits.deadline, wrapUpMs: config.limits.wrapUp }),
    ...(config.limits.onLimit === "ask" && questionSettings(config.questions).mode === "ask"
      ? { asksAtLimit: true as const }
      : {}),
    ...(config.sandbox.askForDomains === true ? { asksForDomains: true as const } : {}),
    ...(Object.keys(config.mcpServers ?? {}).length === 0 ? {} : { serversAsk: true as const }),
    ...(setup === undefined ? {} : { setupTimeoutMs: setupTimeoutOf(setup, config.sandbox) }),
    maxFutileRounds: MAX_FUTILE_ROUNDS,
    maxHistoryEvents: config.limits.maxHistoryEvents,
    modelTimeoutMs: config.limits.modelTimeout,
    toolTimeoutMs: longestCallMs(config, ownToolMs) + TOOL_GRACE_MS,
    keepsInterrupt: true,
    announcesQueued: true,
    needsStop: true,
    ...(config.tenant === undefined ? {} : { tenant: config.tenant }),
    ...(precedenceOf(config) === undefined ? {} : { takesTurns: true as const }),
    ...(config.outputSchema === undefined ? {} : { checksAnswer: true as const }),
    parkAfterMs: questionSettings(config.questions).parkAfter,
    ...asItIs,
  };
}

/** The longest that a call of any of the run's tools may take, in ms. */
function longestCallMs({ tools, mcpServers = {} }: RunConfig, ownToolMs: number): number {
  return Math.max(
    ownToolMs,
    ...["bash", ...Object.keys(tools)].map((name) => defaultLimits(name, tools[name]).maxTimeoutMs),
    // A call may have to reach or start its server first.
    ...Object.values(mcpServers).map((server) => server.maxTimeout + server.startTimeout),
  );
}

/** How long a provider may keep silent, in ms. Source: requirement 3, survey of reliability, R32–R34. */
export interface Deadlines {
  /** Until the response's headers. */
  readonly connectMs: number;
  /** From then until the first piece of the answer. */
  readonly firstTokenMs: number;
  /** Between two pieces. */
  readonly silenceMs: number;
  /** From the request to the answer's end: below the timeout of the activity that asks, which could keep and tell nothing. */
  readonly answerMs: number;
}
