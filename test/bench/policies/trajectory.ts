/** A long task as it is replayed: what the agent said and called, what the tools gave, what a person said in between. */

export type FactKind = "rule" | "decision" | "path" | "finding";

/** Something worth knowing until the end. */
export interface Fact {
  readonly kind: FactKind;
  /** The words by which it is found in a text. */
  readonly key: string;
  /** It whole, as a summary would carry it on. */
  readonly words: string;
}

export interface TrajectoryCall {
  readonly name: string;
  readonly input: unknown;
  /** Before any limit of a policy on its length. */
  readonly output: string;
  readonly failed?: boolean;
}

export interface TrajectoryStep {
  /** What a person says before it. */
  readonly user?: string;
  /** The person came back after an hour: nothing is in the provider's cache. */
  readonly cold?: boolean;
  readonly text: string;
  readonly calls: readonly TrajectoryCall[];
}

export interface Trajectory {
  readonly task: string;
  readonly steps: readonly TrajectoryStep[];
  readonly facts: readonly Fact[];
}
