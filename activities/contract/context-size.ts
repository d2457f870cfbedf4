/** How large the next request is. Types only. */

/** Size of the next request, in tokens. */
export interface ContextSize {
  /** Known tokens of the next request. */
  readonly used: number;
  /** False if `used` comes from usage that a provider reported. */
  readonly estimated: boolean;
  /** Total tokens of tool results that prune could hide. */
  readonly prunable: number;
  /** Tokens by which the request grows per step, as measured since the newest summary. */
  readonly growth?: number;
  /** Calibration factor for estimates of new messages with this model; 1 if absent. */
  readonly ratio?: number;
}
