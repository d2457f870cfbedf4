/** Whose tasks go first, in Temporal's words: a lower key, and among equals those whose turn it is. Pure. */
export interface Precedence {
  /** 1 to 5; absent means 3. */
  readonly priorityKey?: number;
  /** Tasks of different keys take turns. */
  readonly fairnessKey?: string;
}

/** What a run was started with. In Temporal's messages 0 and the empty text stand for nothing. */
export function givenPrecedence({ priorityKey, fairnessKey }: Precedence = {}): Precedence | undefined {
  if (!priorityKey && !fairnessKey) return undefined;
  return {
    ...(priorityKey ? { priorityKey } : {}),
    ...(fairnessKey ? { fairnessKey } : {}),
  };
}
