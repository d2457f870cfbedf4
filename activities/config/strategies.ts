/** The compaction strategies, as data. The engine that follows them is compaction/compact.ts. */

/**
 * What triggers a compaction: a share of the usable window (0–1), a request that does not fit (by our estimate, or as the
 * provider says), or only a person.
 */
export type StrategyTrigger = number | "overflow" | "manual";

/** A strategy: when it compacts, what stays verbatim besides the task, and who writes the summary. */
export interface Strategy {
  readonly trigger: StrategyTrigger;
  readonly writer: "model" | "code";
  /** Share of the tokens in view that stays at the end, instead of the budget's number of messages. */
  readonly keepRatio?: number;
  /** Number of the user's newest turns that stay; nothing before them stays, however few messages they are. */
  readonly keepTurns?: number;
  /** Messages right after the task that stay. */
  readonly headMessages?: number;
}

/** Upper limit of `headMessages`: the view searches this many rows at the start for kept answers and results. */
export const MAX_HEAD_MESSAGES = 50;

export const strategyNames = [
  "threshold-turns",
  "reactive-overflow",
  "proactive-threshold",
  "threshold-rounds",
  "middle-removal",
  "oldest-removal",
  "deterministic",
] as const;

export type StrategyName = (typeof strategyNames)[number];

/**
 * Source: requirement D0 (Gemini CLI) for `proactive-threshold`, requirement D4 for `threshold-rounds`, else requirement D2. The
 * default is `threshold-turns`: what `reactive-overflow` keeps, at the trigger of `threshold-rounds`. From 32,000
 * tokens on, waiting for the overflow costs 7 to 145 % more on the recorded task, and requests are refused (decision 0026).
 */
export const strategies: Readonly<Record<StrategyName, Strategy>> = {
  "threshold-turns": { trigger: 0.8, writer: "model", keepTurns: 2 },
  "reactive-overflow": { trigger: "overflow", writer: "model", keepTurns: 2 },
  "proactive-threshold": { trigger: 0.5, writer: "model", keepRatio: 0.3 },
  "threshold-rounds": { trigger: 0.8, writer: "model" },
  "middle-removal": { trigger: 0.8, writer: "code", headMessages: 4 },
  "oldest-removal": { trigger: 0.8, writer: "code", keepRatio: 0.5 },
  deterministic: { trigger: 0.8, writer: "code" },
};
