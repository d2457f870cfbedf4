import { runInNewContext } from "node:vm";

/** The most time of the worker's single thread. Source: ours, real answers and patterns take a few ms. */
const MAX_MS = 1_000;

/**
 * Runs synchronous work that may never end, such as a pattern from a schema or a model, which would block the whole worker.
 * @throws Error if it takes more than a second
 */
export const inTime = <Result>(compute: () => Result): Result =>
  runInNewContext("compute()", { compute }, { timeout: MAX_MS }) as Result;
