/** Derives the figures that the workflow uses from a run's configuration; and the limits of each tool. */
import { strategies, type StrategyTrigger } from "./strategies.ts";
import { ASKED_PRUNE, budgetFor, scaledPrune, pruneFirstFor } from "./budget.ts";
import { type RunConfig, questionSettings, type ToolConfig } from "./agent-config.ts";
import type { Budget, PruneFigures } from "../contract/budget.ts";
import type { RunPolicy, RunTimeouts } from "../contract/run-policy.ts";
import { precedenceOf } from "./precedence.ts";
import { setupOf, setupTimeoutOf } from "./sandbox-settings.ts";
import type { ToolLimits } from "../contract/tools.ts";

/** The same number as the failed compactions that trip the breaker. Source: requirement 2.9. */
const MAX_FUTILE_ROUNDS = 3;

/**
 * Share of the usable window at which a session resumed with an expired cache is compacted: for small windows, where
 * a round forgets more, and for those from 128,000 tokens on. Source: measured on a recorded session (decision 0034).
 */
const RETURN_TRIGGER = { small: 0.4, large: 0.25 };
const LARGE_WINDOW_TOKENS = 128_000;

/**
 * Most tokens of the usable window that the trigger's share refers to, unless a share is configured: in a larger
 * window each step would pay for tokens that it hardly needs. Source: measured on the same session (decision 0034).
 */
const ECONOMIC_TOKENS = 200_000;

/** Extra time for a tool's own clean-up beyond its timeout. */
const TOOL_GRACE_MS = 60_000;

/** Budget of the run's model. `prefixTokens` is the measured size of system prompt and tools. */
export function budgetOf(config: RunConfig, prefixTokens: number): Budget {
  const { options } = config.context;
  const trigger = triggerOf(config);
  const { small, large } = RETURN_TRIGGER;
  const usual = config.contextWindow < LARGE_WINDOW_TOKENS ? small : large;
  // A session that compacts only on a person's request, or on an overflow, does not compact on resume either.
  const returnRatio = options.returnTrigger ?? (typeof trigger === "number" ? usual : undefined);
  const isConfigured = (options.trigger ?? config.headroom) !== undefined || typeof trigger !== "number";
  return budgetFor(config.contextWindow, {
    triggerRatio: typeof trigger === "number" ? trigger : "limit",
    ...(returnRatio === undefined ? {} : { returnRatio }),
    ...(isConfigured ? {} : { triggerOfTokens: ECONOMIC_TOKENS }),
    ...(options.returnTrigger === undefined ? { returnOfTokens: ECONOMIC_TOKENS } : {}),
    prefixTokens,
    maxOutputTokens: config.maxOutput,
    ...(config.maxInput === undefined ? {} : { maxInputTokens: config.maxInput }),
    ...(options.keepMessages === undefined ? {} : { tailMessages: options.keepMessages }),
    prune: pruneFiguresOf(config),
    pruneFirst: pruneModeOf(config) === "auto" ? pruneFirstFor(config.contextWindow) : {},
  });
}

/**
 * What prune protects and the least it hides: as configured. Otherwise `always`, the rule that was asked for, has the requirement's
 * numbers in every window; a prune before a summary scales them to a small one.
 */
export function pruneFiguresOf(config: RunConfig): PruneFigures {
  const { pruneProtect, pruneMinimum } = config.context.options;
  const usual = pruneModeOf(config) === "each-step" ? ASKED_PRUNE : scaledPrune(config.contextWindow);
  return {
    pruneProtectTokens: pruneProtect ?? usual.pruneProtectTokens,
    pruneMinimumTokens: pruneMinimum ?? usual.pruneMinimumTokens,
  };
}

function pruneModeOf({ context }: RunConfig): "auto" | "each-step" | "never" {
  const { prune = "auto" } = context.options;
  return prune === "always" ? "each-step" : prune;
}

/** What starts a compaction in this run: as configured, otherwise the strategy's trigger. */
function triggerOf({ context, headroom }: RunConfig): StrategyTrigger {
  if (context.options.auto === false) return "manual";
  return context.options.trigger ?? headroom ?? strategies[context.strategy].trigger;
}

/** Assumed characters per token when text is cut before it is counted: cautious, as tool output has 2.8–3.1. */
const CHARS_PER_TOKEN = 3;

/**
 * Limits of a tool within a window: one result never exceeds the tail that compaction keeps; otherwise nothing could
 * be compacted away from a live turn.
 */
export function toolLimitsOf(config: RunConfig, name: string): ToolLimits {
  const limits = defaultLimits(name, config.tools[name]);
  const room = budgetOf(config, 0).tailTokens * CHARS_PER_TOKEN;
  return { ...limits, maxChars: Math.min(limits.maxChars, room) };
}

/**
 * Subtracted from an attempt's timeout for storing the partial answer and reporting the end, in ms; a tenth for short
 * timeouts. Chosen: some ten times what a working store needs.
 */
const REPORT_MS = 15_000;

/** Deadlines of a request within an attempt. @param elapsedMs since the attempt started */
export function modelDeadlines({ limits }: Pick<RunConfig, "limits">, elapsedMs: number): Deadlines {
  const { modelTimeout } = limits;
  return {
    connectMs: limits.connectTimeout,
    firstTokenMs: limits.firstTokenTimeout,
    silenceMs: limits.silenceTimeout,
    thinkingMs: limits.thinkingTimeout,
    answerMs: Math.max(1, modelTimeout - Math.min(REPORT_MS, modelTimeout / 10) - elapsedMs),
  };
}

/** What a run's policy takes from its session and the worker that opens it. */
type OpeningFacts = Pick<
  RunPolicy,
  "searchAttributes" | "taskQueues" | "prefix" | "git" | "delegates" | "takesTools" | "notifies" | "trace"
> & {
  readonly timeouts: Pick<RunTimeouts, "heartbeatMs" | "hostMs">;
  /** The longest timeout of the operator's own tools. */
  readonly ownToolMs?: number;
};

export function runPolicyOf(
  config: RunConfig,
  prefixTokens: number,
  { ownToolMs = 0, timeouts, ...facts }: OpeningFacts,
): RunPolicy {
  const { limits, sandbox, questions, fallback } = config;
  const setup = setupOf(sandbox);
  return {
    model: config.model,
    maxSteps: limits.maxSteps,
    budget: budgetOf(config, prefixTokens),
    prune: pruneModeOf(config),
    autoCompaction: triggerOf(config) === "manual" ? false : undefined,
    fallbacks: fallback && { count: fallback.length, returnAfterMs: limits.returnAfter },
    maxCostUsd: limits.maxCostUsd,
    deadline:
      limits.deadline === undefined ? undefined : { afterMs: limits.deadline, wrapUpMs: limits.wrapUp },
    asks: {
      atLimit: (limits.onLimit === "ask" && questionSettings(questions).mode === "ask") || undefined,
      forDomains: sandbox.askForDomains || undefined,
      forServers: Object.keys(config.mcpServers ?? {}).length > 0 || undefined,
    },
    maxFutileRounds: MAX_FUTILE_ROUNDS,
    maxHistoryEvents: limits.maxHistoryEvents,
    timeouts: {
      modelMs: limits.modelTimeout,
      toolMs: longestCallMs(config, ownToolMs) + TOOL_GRACE_MS,
      setupMs: setup && setupTimeoutOf(setup, sandbox),
      ...timeouts,
    },
    tenant: config.tenant,
    takesTurns: precedenceOf(config) === undefined ? undefined : true,
    checksAnswer: config.outputSchema === undefined ? undefined : true,
    parkAfterMs: questionSettings(questions).parkAfter,
    ...facts,
  };
}

/** The longest that any tool call of the run may take, in ms. */
function longestCallMs({ tools, mcpServers = {} }: RunConfig, ownToolMs: number): number {
  return Math.max(
    ownToolMs,
    ...["bash", ...Object.keys(tools)].map((name) => defaultLimits(name, tools[name]).maxTimeoutMs),
    // A call may first have to reach or start its server.
    ...Object.values(mcpServers).map((server) => server.maxTimeout + server.startTimeout),
  );
}

/** How long a provider may stay silent, in ms. Source: requirement 3. */
export interface Deadlines {
  /** Until the response's headers. */
  readonly connectMs: number;
  /** From then until the first chunk of the answer. */
  readonly firstTokenMs: number;
  /** Between two chunks. */
  readonly silenceMs: number;
  /** The same for a model that reasons; at least `firstTokenMs`. */
  readonly thinkingMs?: number;
  /**
   * From the request to the answer's end: less than the asking activity's timeout, after which nothing could be
   * stored or reported.
   */
  readonly answerMs: number;
}

/** Upper limit of any tool result, whatever a tool's own limit says. Source: requirement 4.4 (120,000). */
export const MAX_RESULT_CHARS = 120_000;

/** Longest any built-in tool may take if nothing is configured. Source: requirement 5 (bash, 10 min at most). */
const MAX_TOOL_TIMEOUT_MS = 600_000;

/** Source: requirement 4.4 (read 2,000 lines × 2,000 characters, grep 1,000 matches, anything 120,000). */
const COMMON: ToolLimits = {
  timeoutMs: 30_000,
  maxTimeoutMs: 120_000,
  maxChars: MAX_RESULT_CHARS,
  maxLines: 2_000,
  maxLineChars: 2_000,
  maxMatches: 1_000,
};

const OWN: Readonly<Record<string, Partial<ToolLimits>>> = {
  // requirement 5 and 4.4: 60 s by default, 10 min at most; 30,000 characters, head and tail.
  bash: { timeoutMs: 60_000, maxTimeoutMs: MAX_TOOL_TIMEOUT_MS, maxChars: 30_000 },
  bash_output: { maxChars: 30_000 },
  kill_process: { maxChars: 30_000 },
  // The matching line is cut: pi cuts at 500.
  grep_content: { timeoutMs: 60_000, maxLineChars: 500 },
  glob_files: { timeoutMs: 60_000 },
  // A page of a stored output is as long as a command's result.
  read_output: { maxChars: 30_000 },
  // The delegate's last answer. Chosen: some 2,000 tokens.
  delegate: { maxChars: 8_000 },
};

/** Limits that apply to a tool. @param overrides `tools.<name>` of the configuration */
export function defaultLimits(name: string, overrides?: ToolConfig): ToolLimits {
  const base: ToolLimits = { ...COMMON, ...OWN[name] };
  const own = overrides?.limits;
  const timeoutMs = overrides?.timeout ?? base.timeoutMs;
  return {
    timeoutMs,
    maxTimeoutMs: Math.max(timeoutMs, own?.maxTimeout ?? base.maxTimeoutMs),
    maxChars: Math.min(own?.maxChars ?? base.maxChars, MAX_RESULT_CHARS),
    maxLines: own?.maxLines ?? base.maxLines,
    maxLineChars: own?.maxLineChars ?? base.maxLineChars,
    maxMatches: own?.maxMatches ?? base.maxMatches,
  };
}
