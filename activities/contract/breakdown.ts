/** What fills the context window, for `context` and the Web UI (requirement 4.5). Pure: no clock, no I/O. */

/** All in tokens; the five parts add up to the window. */
export interface Breakdown {
  /** Estimated. */
  readonly system: number;
  /** Estimated. */
  readonly tools: number;
  /** Derived from the total: tokens used beyond system and tools. */
  readonly messages: number;
  readonly free: number;
  /** Reserved for the answer. */
  readonly outputBuffer: number;
}

/** A part displayed smaller or larger than computed, so that no part is below 0 and the parts add up to the window. */
export interface CappedPart {
  readonly part: BreakdownPart;
  /** Tokens computed for the part; below 0 if system and tools were estimated at more than the whole request. */
  readonly wanted: number;
}

export type BreakdownPart = keyof Breakdown;

/** Title and symbol of each part, in the order of the bar. */
export const BREAKDOWN_PARTS: readonly (readonly [BreakdownPart, string, string])[] = [
  ["system", "system prompt", "▓"],
  ["tools", "tools", "▒"],
  ["messages", "messages", "█"],
  ["free", "free", "░"],
  ["outputBuffer", "output buffer", "▚"],
];

/**
 * System and tools are estimated; messages are the rest of the next request, and free is the rest of the window. A
 * request larger than the window first takes from the output buffer.
 * @param sizes tokens; `used` is the next request
 */
export function breakdownOf(sizes: {
  readonly windowTokens: number;
  readonly outputTokens: number;
  readonly used: number;
  readonly system: number;
  readonly tools: number;
}): { readonly parts: Breakdown; readonly capped: readonly CappedPart[] } {
  const { windowTokens, outputTokens, used } = sizes;
  const wanted = {
    system: sizes.system,
    tools: sizes.tools,
    messages: used - sizes.system - sizes.tools,
    outputBuffer: outputTokens,
  };
  let room = windowTokens;
  const take = (tokens: number): number => {
    const taken = Math.min(Math.max(0, tokens), room);
    room -= taken;
    return taken;
  };
  const system = take(wanted.system);
  const tools = take(wanted.tools);
  const messages = take(wanted.messages);
  const outputBuffer = take(wanted.outputBuffer);
  const parts = { system, tools, messages, free: room, outputBuffer };
  const capped = (["system", "tools", "messages", "outputBuffer"] as const)
    .filter((part) => parts[part] !== wanted[part])
    .map((part) => ({ part, wanted: wanted[part] }));
  return { parts, capped };
}

/** The window as a bar of `cells`: how many cells each part takes, rounded cumulatively from the left so that they add up. */
export function barOf(parts: Breakdown, cells: number): readonly (readonly [BreakdownPart, number])[] {
  const whole = BREAKDOWN_PARTS.reduce((sum, [name]) => sum + parts[name], 0);
  let begin = 0;
  let drawn = 0;
  return BREAKDOWN_PARTS.map(([name]) => {
    begin += parts[name];
    const endOfNothing = name === "free" ? cells : drawn;
    const end = whole > 0 ? Math.round((begin / whole) * cells) : endOfNothing;
    const wide = Math.max(0, end - drawn);
    drawn = Math.max(drawn, end);
    return [name, wide] as const;
  });
}
