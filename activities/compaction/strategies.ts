/** The strategies by name. */
import type { StrategyName } from "../contract/strategies.ts";
import { tokensOf } from "../transcript/boundary.ts";
import type { Strategy } from "./strategy.ts";
import { summaryStrategy } from "./summary-strategy.ts";

/** Gemini's figures: starts at half the window, keeps the newest 30 %. Source: requirement D0. */
const PROACTIVE_RATIO = 0.5;
const PROACTIVE_KEEP = 0.3;

/** Messages after the task that middle removal leaves at the beginning. */
const HEAD_MESSAGES = 4;
/** Share that oldest removal leaves. */
const OLDEST_KEEP = 0.5;

const strategies: Readonly<Record<StrategyName, Strategy>> = {
  "reactive-overflow": summaryStrategy({ name: "reactive-overflow", trigger: { kind: "overflow" } }),
  "threshold-rounds": summaryStrategy({
    name: "threshold-rounds",
    trigger: { kind: "threshold", ratio: 0.8 },
  }),
  "proactive-threshold": summaryStrategy({
    name: "proactive-threshold",
    trigger: { kind: "threshold", ratio: PROACTIVE_RATIO },
    keep: (input, standard) => ({
      ...standard,
      tailMessages: input.keepMessages ?? Infinity,
      tailTokens: Math.floor(tokensOf(input.rows) * (input.keepRatio ?? PROACTIVE_KEEP)),
    }),
  }),
  deterministic: summaryStrategy({
    name: "deterministic",
    trigger: { kind: "threshold", ratio: 0.8 },
    deterministic: true,
  }),
  // The removals leave a note made without a model where the messages were; they differ in which messages go.
  "middle-removal": summaryStrategy({
    name: "middle-removal",
    trigger: { kind: "threshold", ratio: 0.8 },
    keep: (input, standard) => ({ ...standard, headMessages: input.headMessages ?? HEAD_MESSAGES }),
    deterministic: true,
  }),
  "oldest-removal": summaryStrategy({
    name: "oldest-removal",
    trigger: { kind: "threshold", ratio: 0.8 },
    keep: (input, standard) => ({
      ...standard,
      tailMessages: input.keepMessages ?? Infinity,
      tailTokens: Math.floor(tokensOf(input.rows) * (input.keepRatio ?? OLDEST_KEEP)),
    }),
    deterministic: true,
  }),
};

export function strategyFor(name: StrategyName): Strategy {
  return strategies[name];
}
