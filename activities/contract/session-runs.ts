/** What is asked about the other runs of a session. */
import type { Guidance } from "./guidance.ts";

export interface SessionRuns {
  /** Whether Temporal has this run as the session's newest, and it has not ended. */
  isCurrent(sessionId: string, runId: string): Promise<boolean>;
  /** Whether a run of the session is open in Temporal. */
  isRunning(sessionId: string): Promise<boolean>;
  /** Asks the session's run to cancel; an ended one is not touched. */
  cancel(sessionId: string): Promise<void>;
  /**
   * Messages that were given to runs which then were terminated, reset or timed out, and so could not keep them: the run
   * that was in charge, and those after it that never opened the session. Oldest first, delivered ones too.
   */
  unkept(sessionId: string, runs: UnkeptRuns): Promise<Guidance[]>;
}

export interface UnkeptRuns {
  /** Undefined if the session never had a run. */
  readonly inCharge: string | undefined;
  /** The run that asks: it has its own messages. */
  readonly asking?: string;
  /** One that is about to be ended: its messages are returned as well. */
  readonly ending?: string | undefined;
}
