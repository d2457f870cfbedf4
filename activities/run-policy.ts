/** From a run's configuration to the figures the workflow decides by. Pure. */
import type { RunConfig } from "./agent-config.ts";
import { budgetFor, type Budget } from "./context/budget.ts";
import type { RunPolicy } from "./contract.ts";
import { defaultLimits } from "./tools/limits.ts";

/** Default share of the usable window at which compaction starts. Source: requirements D4. */
const TRIGGER_RATIO = 0.8;

/** Room for a tool's own clean-up beyond its timeout. */
const TOOL_GRACE_MS = 60_000;

/** Budget of the run's model. `prefixTokens` is what system prompt and tools were measured at. */
export function budgetOf(config: RunConfig, prefixTokens: number): Budget {
  const { options } = config.context;
  return budgetFor(config.contextWindow, {
    triggerRatio: options.trigger ?? config.headroom ?? TRIGGER_RATIO,
    prefixTokens,
    maxOutputTokens: config.maxOutput,
    ...(options.keepMessages === undefined ? {} : { tailMessages: options.keepMessages }),
  });
}

export function runPolicyOf(
  config: RunConfig,
  prefixTokens: number,
  fixed: Pick<RunPolicy, "searchAttributes" | "taskQueues">,
): RunPolicy {
  const slowest = Math.max(
    ...["bash", ...Object.keys(config.tools)].map(
      (name) => defaultLimits(name, config.tools[name]).maxTimeoutMs,
    ),
  );
  return {
    model: config.model,
    maxSteps: config.limits.maxSteps,
    budget: budgetOf(config, prefixTokens),
    maxHistoryEvents: config.limits.maxHistoryEvents,
    modelTimeoutMs: config.limits.modelTimeout,
    toolTimeoutMs: slowest + TOOL_GRACE_MS,
    ...fixed,
  };
}
