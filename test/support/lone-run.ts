/** For activities that are called without Temporal: whichever run asks is the current one, and nobody else was told anything. */
import type { SessionRuns } from "../../activities/contract/session-runs.ts";

export const loneRun: SessionRuns = {
  isCurrent: () => Promise.resolve(true),
  isRunning: () => Promise.resolve(false),
  cancel: () => Promise.resolve(),
  unkept: () => Promise.resolve([]),
};
