/** What the window is full of, for `context` and the Web UI (requirement 4.5). Pure: no clock, no I/O. */

export interface Breakdown {
  readonly windowTokens: number;
  /** Tokens of the next request. */
  readonly usedTokens: number;
  /** True where no bill stands behind `usedTokens`: shown as `(estimated)`. */
  readonly estimated: boolean;
  readonly systemTokens: number;
  readonly toolTokens: number;
  /** What is used beyond system and tools; 0 where those were estimated too high. */
  readonly messageTokens: number;
  /** Kept back for the answer. */
  readonly outputTokens: number;
  readonly freeTokens: number;
}

/** @param sizes system and tools estimated, `usedTokens` from `estimatedNextInput` */
export function breakdownOf(sizes: {
  readonly windowTokens: number;
  readonly outputTokens: number;
  readonly usedTokens: number;
  readonly estimated: boolean;
  readonly systemTokens: number;
  readonly toolTokens: number;
}): Breakdown {
  const { windowTokens, outputTokens, usedTokens, systemTokens, toolTokens } = sizes;
  return {
    ...sizes,
    messageTokens: Math.max(0, usedTokens - systemTokens - toolTokens),
    freeTokens: Math.max(0, windowTokens - usedTokens - outputTokens),
  };
}

/** Share of the window in percent, one decimal. */
export function percentOf(tokens: number, windowTokens: number): number {
  return windowTokens > 0 ? Math.round((tokens / windowTokens) * 1_000) / 10 : 0;
}
