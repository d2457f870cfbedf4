/** A part of the worker's process that runs beside its activities. What it remembers is in the instance. */
export interface Service {
  /** Resolves when it runs. @throws what keeps it from running: then nothing of it is left, and the worker does not start */
  start(): Promise<void>;
  /** Ends it, also if it never started, and waits for what is under way. */
  stop(): Promise<void>;
}
