/** Where a run stands when it claims a session. */
import type { Place } from "../contract/session-runs.ts";
import type { Fork } from "./lines.ts";

/** A run's position at its first write: later rows belong to another line. */
export interface Standpoint {
  readonly step: number;
  /**
   * `model`: this step's messages are still to come; `tools`: its answer is stored, its results are not; `resume`: a new
   * run that continues from everything stored, so that only our own notes for a step that never ran are dropped.
   */
  readonly phase: "model" | "tools" | "resume";
  /**
   * The last compaction round that stays in force; `earlier`: only rounds of earlier steps do; if it is not known, those of
   * this step do as well.
   */
  readonly round?: number | "earlier";
  /** What else is known of a run that a reset made. */
  readonly fork?: ForkPoint;
}

/** How far the run that was reset had come, where its step and round do not say it. */
interface ForkPoint extends Pick<Place, "open" | "settled" | "pruned" | "undone"> {
  /** When that run claimed the session: what is older was there when it began. */
  readonly since: Date;
  /** The live rows were of another line, which has been left for that of this run. */
  readonly isOther: boolean;
}

/** Where a reset goes back to. */
export function standpointAt({ run, place }: Fork, isOther: boolean): Standpoint {
  const { open, settled, pruned, undone } = place;
  const fork = { open, settled, pruned, undone, since: run.startedAt, isOther };
  // A run that was reset to its start has everything that it found.
  if (place.step === undefined) return { step: run.startStep + 1, phase: "model", round: "earlier", fork };
  return { step: place.step, phase: place.phase, round: place.round ?? "earlier", fork };
}
