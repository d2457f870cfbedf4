/** Which tasks go first, in Temporal's terms: lower keys first, and equal keys take turns. Pure. */
export interface Precedence {
  /** 1 to 5; absent means 3. */
  readonly priorityKey?: number;
  /** Tasks with different keys take turns. */
  readonly fairnessKey?: string;
}

/** The precedence that a run was started with. In Temporal's messages 0 and the empty string mean unset. */
export function givenPrecedence({ priorityKey, fairnessKey }: Precedence = {}): Precedence | undefined {
  if (!priorityKey && !fairnessKey) return undefined;
  return {
    ...(priorityKey ? { priorityKey } : {}),
    ...(fairnessKey ? { fairnessKey } : {}),
  };
}
