/** Queries about the other runs of a session. */
import type { Guidance } from "./guidance.ts";

export interface SessionRuns {
  /** Whether this run is the session's newest in Temporal, and has not ended. */
  isCurrent(sessionId: string, runId: string): Promise<boolean>;
  /** Whether a run of the session is open in Temporal. */
  isRunning(sessionId: string): Promise<boolean>;
  /** Asks the session's run to cancel; has no effect on an ended one. */
  cancel(sessionId: string): Promise<void>;
  /**
   * Messages sent to runs that were then terminated, reset or timed out, and so could not store them: the run in
   * charge, and later runs that never opened the session. Oldest first, delivered ones included.
   */
  unkept(sessionId: string, runs: UnkeptRuns): Promise<Guidance[]>;
}

export interface UnkeptRuns {
  /** Undefined if the session never had a run. */
  readonly inCharge: string | undefined;
  /** The run that asks: it has its own messages, so they are not returned. */
  readonly asking?: string;
  /** A run that is about to be ended: its messages are returned as well. */
  readonly ending?: string | undefined;
}
