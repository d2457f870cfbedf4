/** When an activity reports to Temporal: rarely, and soon and often where it must learn of a stop. */

/** After an announced stop; each further wait is twice as long. Temporal may learn of the stop a moment later than we do. */
export const FIRST_LOOK_MS = 50;

export interface Heartbeats {
  /** There is something to hear, or to tell. */
  readonly hurry: () => void;
  readonly end: () => void;
}

/** @param paceMs how long to wait for the next one, asked each time */
export function startHeartbeats(beat: () => void, paceMs: () => number): Heartbeats {
  let timer: NodeJS.Timeout;
  const next = (waitMs: number) => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      beat();
      next(Math.min(waitMs * 2, paceMs()));
    }, waitMs);
  };
  next(paceMs());
  return {
    hurry: () => next(Math.min(FIRST_LOOK_MS, paceMs())),
    end: () => clearTimeout(timer),
  };
}
