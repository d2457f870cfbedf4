import { runInNewContext } from "node:vm";

/** Of a worker's one thread. Source: ours, real answers and patterns take some ms. */
const MAX_MS = 1_000;

/**
 * For what others wrote and may never end, such as a pattern that a schema or a model gives: nothing else runs beside it.
 * @throws Error if it takes more than a second, however busy it is
 */
export const inTime = <Result>(work: () => Result): Result =>
  runInNewContext("work()", { work }, { timeout: MAX_MS }) as Result;
