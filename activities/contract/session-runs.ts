/** Queries about the other runs of a session. */
import type { Guidance } from "./guidance.ts";

export interface SessionRuns {
  /** Temporal's namespace. */
  readonly namespace?: string;
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
  /**
   * All messages that people sent to the session's runs, as far as Temporal has them: for rows that are older. Oldest first.
   * @param runId the newest run, which Temporal's list may not have yet
   */
  said(sessionId: string, runId: string | undefined): Promise<Guidance[]>;
  /** The last step that a run had finished; 0 if it never opened the session, or Temporal does not have it. */
  finished(sessionId: string, runId: string): Promise<number>;
  /** The newest run of the session that has ended, other than the one that asks. */
  newestEnded(sessionId: string, asking: string): Promise<string | undefined>;
  /** Undefined for a run that began by itself, or that Temporal does not have. */
  origin(sessionId: string, runId: string): Promise<RunOrigin | undefined>;
}

/** Where a run comes from. */
export type RunOrigin = ResetOrigin | ContinuedOrigin;

/** A run that Temporal made from one that continued as new. */
interface ContinuedOrigin {
  readonly continues: string;
}

/** Where a run that Temporal made by a reset comes from. */
export interface ResetOrigin {
  /** The run that was reset. */
  readonly runId: string;
  /** The resets that its history contains: each new run, and the run that it was made from. */
  readonly forks: ReadonlyMap<string, string>;
  readonly place: HistoryPlace;
}

/**
 * How far a run had come by an event of its history: what it had finished by then belongs to the line of a run that is reset to
 * that event, and nothing later does, whichever of its activities is the first to write.
 */
export interface HistoryPlace {
  /** Undefined if the run had not opened its session. */
  readonly step: number | undefined;
  /** `model`: the step has no answer yet; `tools`: its answer is stored, and some of its calls have no result. */
  readonly phase: "model" | "tools";
  /** For `tools`: the indexes of these calls; undefined means all. */
  readonly open?: readonly number[] | undefined;
  /** Ids of the step's questions that were settled. */
  readonly settled: readonly string[];
  /** The last compaction round. */
  readonly round: number | undefined;
  /** The last step at which results were hidden; undefined if this run had hidden none. */
  readonly pruned: number | undefined;
  /** The requests by which rounds were undone in this run. */
  readonly undone: readonly string[];
}

export interface UnkeptRuns {
  /** Undefined if the session never had a run. */
  readonly inCharge: string | undefined;
  /** The run that asks: it has its own messages, so they are not returned. */
  readonly asking?: string;
  /** A run that is about to be ended: its messages are returned as well. */
  readonly ending?: string | undefined;
}
