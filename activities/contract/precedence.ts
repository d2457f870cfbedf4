/** Whose tasks go first, in Temporal's words: a lower key, and among equals those whose turn it is. A type only. */
export interface Precedence {
  /** 1 to 5; absent means 3. */
  readonly priorityKey?: number;
  /** Tasks of different keys take turns. */
  readonly fairnessKey?: string;
}
