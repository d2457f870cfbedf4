/** Derives the figures that the workflow uses from a run's configuration; and the limits of each tool. */
import { calculateBudget, pruneModeOf, triggerOf } from "./budget.ts";
import type { RunConfig, ToolConfig } from "./agent-config.ts";
import type { RunPolicy, RunTimeouts } from "../contract/run-policy.ts";
import { toPrecedence } from "./precedence.ts";
import { setupOf, sumSetupTimeouts } from "./sandbox-settings.ts";
import { sumServiceTimeouts } from "./service-settings.ts";
import type { ToolLimits } from "../contract/tools.ts";
import { toVerifyPolicy } from "./verify-settings.ts";

/** The same number as the failed compactions that trip the breaker. Source: requirement 2.9. */
const MAX_FUTILE_ROUNDS = 3;

/** Extra time for a tool's own clean-up beyond its timeout. */
const TOOL_GRACE_MS = 60_000;

/** Assumed characters per token when text is cut before it is counted: cautious, as tool output has 2.8–3.1. */
const CHARS_PER_TOKEN = 3;

/**
 * Limits of a tool within a window: one result never exceeds the tail that compaction keeps; otherwise nothing could
 * be compacted away from a live turn.
 */
export function toolLimitsOf(config: RunConfig, name: string): ToolLimits {
  const limits = defaultLimits(name, config.tools[name]);
  const room = calculateBudget(config, 0).tailTokens * CHARS_PER_TOKEN;
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

export function toRunPolicy(
  config: RunConfig,
  prefixTokens: number,
  { ownToolMs = 0, timeouts, ...facts }: OpeningFacts,
): RunPolicy {
  const { limits, sandbox, questions, fallback } = config;
  const setup = setupOf(sandbox);
  return {
    model: config.model,
    maxSteps: limits.maxSteps,
    budget: calculateBudget(config, prefixTokens),
    prune: pruneModeOf(config),
    autoCompaction: triggerOf(config) === "manual" ? false : undefined,
    fallbacks: fallback && { count: fallback.length, returnAfterMs: limits.returnAfter },
    maxCostUsd: limits.maxCostUsd,
    deadline:
      limits.deadline === undefined ? undefined : { afterMs: limits.deadline, wrapUpMs: limits.wrapUp },
    asks: {
      atLimit: (limits.onLimit === "ask" && questions.mode === "ask") || undefined,
      forDomains: sandbox.askForDomains || undefined,
      forServers: Object.keys(config.mcpServers ?? {}).length > 0 || undefined,
    },
    maxFutileRounds: MAX_FUTILE_ROUNDS,
    maxHistoryEvents: limits.maxHistoryEvents,
    timeouts: {
      modelMs: limits.modelTimeout,
      toolMs: longestCallMs(config, ownToolMs) + TOOL_GRACE_MS,
      setupMs: sumOf(setup && sumSetupTimeouts(setup, sandbox), sumServiceTimeouts(sandbox)),
      ...timeouts,
    },
    tenant: config.tenant,
    takesTurns: toPrecedence(config) === undefined ? undefined : true,
    verify: toVerifyPolicy(config.verify),
    checksAnswer: config.outputSchema === undefined ? undefined : true,
    parkAfterMs: questions.parkAfter,
    parksAtEnd: sandbox.park.keep > 0 ? true : undefined,
    ...facts,
  };
}

/** Undefined if both are. */
const sumOf = (one: number | undefined, other: number | undefined) =>
  one === undefined && other === undefined ? undefined : (one ?? 0) + (other ?? 0);

/** The longest that any tool call of the run may take, in ms. */
function longestCallMs({ tools, mcpServers = {}, sandbox }: RunConfig, ownToolMs: number): number {
  return Math.max(
    ownToolMs,
    // A call may have to start a service, or all of them again.
    sumServiceTimeouts(sandbox) ?? 0,
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
  write_stdin: { maxChars: 30_000 },
  // The matching line is cut: pi cuts at 500.
  grep_content: { timeoutMs: 60_000, maxLineChars: 500 },
  glob_files: { timeoutMs: 60_000 },
  // A page of a stored output is as long as a command's result.
  read_output: { maxChars: 30_000 },
  // Chosen: pages that take longer are hardly read to their end. A page is as long as a command's result.
  web_fetch: { timeoutMs: 20_000, maxTimeoutMs: 20_000, maxChars: 30_000 },
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
