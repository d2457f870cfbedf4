/** The compaction strategies, by the names that configuration has for them. */

export const strategyNames = [
  "reactive-overflow",
  "proactive-threshold",
  "threshold-rounds",
  "middle-removal",
  "oldest-removal",
  "deterministic",
] as const;

export type StrategyName = (typeof strategyNames)[number];
