/** The bound of each session that a schedule starts: nobody sits in front of it. */
import type { RunConfig } from "../../activities/config/agent-config.ts";
import { dearestUsd } from "../../activities/config/cost.ts";
import type { ModelTarget } from "../../activities/config/model-target.ts";
import { dollars } from "../../activities/text/format.ts";

/** Without a choice. Chosen: what a long task costs; and, where a price is not known, as many steps as a delegate has. */
const DEFAULT_BOUND = { usd: 10, steps: 100 };

const NOTHING = { input: 0, output: 0 };

/** The first model that a session may ask, be it for a summary, for a delegate or as a fallback, whose price is not known. */
function findUnpriced(config: RunConfig): Pick<ModelTarget, "model"> | undefined {
  const { summariser, delegate, fallback = [] } = config;
  return [config, summariser, delegate?.target, ...fallback].find(
    (target) => target !== undefined && dearestUsd(target, NOTHING) === null,
  );
}

interface BoundConfig {
  readonly config: RunConfig;
  /** What is said when the schedule is made. */
  readonly said: string;
}

/**
 * Gives a schedule's sessions a bound, unless they have one: of money where all prices are known, else of steps.
 * @param isStepsChosen whether a person has set the limit of steps, which stays then
 */
export function withBound(config: RunConfig, isStepsChosen: boolean): BoundConfig {
  const { limits } = config;
  const unpriced = findUnpriced(config);
  if (limits.maxCostUsd !== undefined || unpriced === undefined) {
    const maxCostUsd = limits.maxCostUsd ?? DEFAULT_BOUND.usd;
    return {
      config: { ...config, limits: { ...limits, maxCostUsd } },
      said: `Each of its sessions may cost at most ${dollars(maxCostUsd)}; --max-cost sets another limit.`,
    };
  }
  const maxSteps = isStepsChosen ? limits.maxSteps : Math.min(limits.maxSteps, DEFAULT_BOUND.steps);
  return {
    config: { ...config, limits: { ...limits, maxSteps } },
    said: `The price of ${unpriced.model} is not known, so each of its sessions makes at most ${maxSteps} steps; --max-steps sets another limit.`,
  };
}

/** The limits of a schedule's sessions, as they are stored. */
export interface ScheduleLimits {
  /** USD of a session with its delegates. */
  readonly maxCostUsd: number | null;
  readonly maxSteps: number | null;
}

/** @param config of the schedule's row, perhaps of another version */
export function readLimits(config: unknown): ScheduleLimits {
  const { limits } = (config ?? {}) as { readonly limits?: Partial<ScheduleLimits> };
  return { maxCostUsd: limits?.maxCostUsd ?? null, maxSteps: limits?.maxSteps ?? null };
}

/** Such as `at most $10.00 and 500 steps each`. */
export function limitsText({ maxCostUsd, maxSteps }: ScheduleLimits): string | false {
  const limits = [
    ...(maxCostUsd === null ? [] : [dollars(maxCostUsd)]),
    ...(maxSteps === null ? [] : [`${maxSteps} steps`]),
  ];
  return limits.length > 0 && `at most ${limits.join(" and ")} each`;
}
