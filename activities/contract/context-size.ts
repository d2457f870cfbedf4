/** How large the next request is. Types only. */

/** What the next request is made of, in tokens. */
export interface ContextSize {
  /** Tokens of the next request as far as they are known. */
  readonly used: number;
  /** False if `used` comes from a provider's bill. */
  readonly estimated: boolean;
  /** Tokens of tool results that prune could hide, all together. */
  readonly prunable: number;
  /** Tokens by which the request grows a step, as measured since the newest summary. */
  readonly growth?: number;
  /** What estimates of new messages are multiplied with, as learnt of the model; 1 if it is left out. */
  readonly ratio?: number;
}
