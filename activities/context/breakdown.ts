/** What the window is full of, for `context` and the Web UI (requirement 4.5). Pure: no clock, no I/O. */

/** All in tokens; the five parts are the window. */
export interface Breakdown {
  readonly system: number;
  readonly tools: number;
  /** What is used beyond system and tools; 0 where those were estimated too high. */
  readonly messages: number;
  readonly free: number;
  /** Kept back for the answer. */
  readonly outputBuffer: number;
}

export type BreakdownPart = keyof Breakdown;

/** Title and sign of each part, in the order of the bar. */
export const BREAKDOWN_PARTS: readonly (readonly [BreakdownPart, string, string])[] = [
  ["system", "system prompt", "▓"],
  ["tools", "tools", "▒"],
  ["messages", "messages", "█"],
  ["free", "free", "░"],
  ["outputBuffer", "output buffer", "▚"],
];

/**
 * System and tools are estimated, messages are what remains of the next request: so the parts add up.
 * @param sizes tokens; `used` is the next request
 */
export function breakdownOf(sizes: {
  readonly windowTokens: number;
  readonly outputTokens: number;
  readonly used: number;
  readonly system: number;
  readonly tools: number;
}): Breakdown {
  const { windowTokens, outputTokens, used, system, tools } = sizes;
  return {
    system,
    tools,
    messages: Math.max(0, used - system - tools),
    free: Math.max(0, windowTokens - used - outputTokens),
    outputBuffer: outputTokens,
  };
}

/** The window as a bar of `cells`: how many each part takes, rounded from the left edge on, so that they add up. */
export function barOf(parts: Breakdown, cells: number): readonly (readonly [BreakdownPart, number])[] {
  const whole = BREAKDOWN_PARTS.reduce((sum, [name]) => sum + parts[name], 0);
  let begin = 0;
  let drawn = 0;
  return BREAKDOWN_PARTS.map(([name]) => {
    begin += parts[name];
    const end = whole > 0 ? Math.round((begin / whole) * cells) : name === "free" ? cells : drawn;
    const wide = Math.max(0, end - drawn);
    drawn = Math.max(drawn, end);
    return [name, wide] as const;
  });
}
