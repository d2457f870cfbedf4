/** When an activity reports to Temporal: rarely, but soon and often if a stop was announced. */

/** The first wait after an announced stop, in ms; each further wait is twice as long, since Temporal may learn of it later than we. */
export const FIRST_LOOK_MS = 50;

export interface Heartbeats {
  /** Reports soon: a stop was announced, or there is a new note. */
  readonly hurry: () => void;
  readonly end: () => void;
}

/** @param paceMs how long to wait until the next heartbeat; called before each wait */
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
