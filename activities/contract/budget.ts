/** The figures by which room is made in a window, and when old results are hidden. config/budget.ts works them out. */
/**
 * Why the next request must become smaller: it has reached the trigger, the session is resumed after its provider's cache has
 * expired, or the request goes to another model, whose window is smaller.
 */
export type Occasion = "trigger" | "return" | "smaller";

/**
 * The occasions on which hiding old results comes before a summary. The number is the largest share of the trigger that may be
 * left after that: a request that stays larger soon needs a summary all the same, and has been billed in full twice.
 */
export type PruneFirst = Readonly<Partial<Record<Occasion, number>>>;

/** In tokens. */
export interface PruneFigures {
  /** The newest tool results that prune leaves alone. */
  readonly pruneProtectTokens: number;
  /** The least that it hides at once. */
  readonly pruneMinimumTokens: number;
}

/** Figures that apply to one model, all in tokens of the full request (system + tools + messages). */
export interface Budget extends PruneFigures {
  readonly contextWindow: number;
  /** Room kept free for the answer. */
  readonly outputTokens: number;
  /** Compaction starts at this size. */
  readonly triggerTokens: number;
  /** Size at which a session resumed with an expired cache is compacted; undefined: at the trigger. */
  readonly returnTokens?: number;
  /** No request larger than this is sent. */
  readonly limitTokens: number;
  /** Most tokens of the newest messages that compaction leaves alone. */
  readonly tailTokens: number;
  readonly tailMessages: number;
  /** Most tokens of user messages kept verbatim besides a summary. */
  readonly userTokens: number;
  readonly summaryTokens: number;
  /** When hiding old results comes before a summary; empty: never. */
  readonly pruneFirst: PruneFirst;
}

export interface PruneNumbers {
  /** Tokens of the next request. */
  readonly usedTokens: number;
  /** Tokens of tool results that prune could hide, including the protected ones: see `prunableTokens`. */
  readonly prunableTokens: number;
}

/** Whether hiding old results comes before a summary, on an occasion whose trigger the request has reached. */
export function prunesFirst(
  { usedTokens, prunableTokens }: PruneNumbers,
  occasion: Occasion,
  { budget, triggerTokens }: { readonly budget: Budget; readonly triggerTokens: number },
): boolean {
  const share = budget.pruneFirst[occasion];
  const savedTokens = prunableTokens - budget.pruneProtectTokens;
  if (share === undefined || savedTokens < budget.pruneMinimumTokens) return false;
  const left = usedTokens - savedTokens;
  return left < triggerTokens && left <= triggerTokens * share;
}

/** Whether to hide old results after a step: only the mode `each-step` does, as soon as enough can be hidden. */
export function pruneDue(
  prunableTokens: number,
  { pruneProtectTokens, pruneMinimumTokens }: Budget,
  mode: "auto" | "each-step" | "never",
): boolean {
  return mode === "each-step" && prunableTokens - pruneProtectTokens >= pruneMinimumTokens;
}
