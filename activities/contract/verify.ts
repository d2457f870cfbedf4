/** Whether commands found a session's work good: what the workflow and the activity that runs them exchange. */

/**
 * `passed`: all commands ended with 0. `failed`: one did not. `unavailable`: one could not be run, which says nothing of the work.
 * `changed-checks`: all passed, and files that decide about it were changed.
 */
export const VERIFY_OUTCOMES = ["passed", "failed", "unavailable", "changed-checks"] as const;
export type VerifyOutcome = (typeof VERIFY_OUTCOMES)[number];

/** A failure, to be recognised if it comes again. */
interface SeenFailure {
  /** The files on which it was. */
  readonly tree: string;
  readonly signature: string;
}

export interface VerifyInput {
  /** Steps finished: the last one's answer said that the task is done. */
  readonly step: number;
  /** How many messages about a failure the model got before. */
  readonly round: number;
  /** The model is not told of a failure: no round is left. */
  readonly isLast?: true;
  /** Before the first step: what fails now is not held against the work later. */
  readonly baseline?: true;
  /** The failure of the round before. */
  readonly before?: SeenFailure | undefined;
}

export interface VerifiedWork {
  readonly outcome: VerifyOutcome;
  readonly tree: string;
  /** Set for a failure: its command and how it ended, in a line. */
  readonly reason?: string;
  readonly signature?: string;
  /** The model was told of the failure, and works on. */
  readonly goesOn?: true;
}

/** What a run's policy has of `verify`. */
export interface VerifyPolicy {
  readonly rounds: number;
  /** Longest time of all commands together, in ms. */
  readonly timeoutMs: number;
  /** The commands run before the first step, too. */
  readonly baseline?: true;
  /** Nothing is delivered unless it was verified. */
  readonly holds?: true;
  /** Changed checks count as not verified. */
  readonly refusesChangedChecks?: true;
}

/** Whether work with this outcome counts as not verified (exit code 9). Undefined: nothing was verified. */
export function isUnverified(
  outcome: string | null | undefined,
  { refusesChangedChecks }: Pick<VerifyPolicy, "refusesChangedChecks">,
): boolean {
  if (outcome === "changed-checks") return refusesChangedChecks === true;
  return outcome === "failed" || outcome === "unavailable";
}
