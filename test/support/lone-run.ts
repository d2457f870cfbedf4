/** For activities that are called without Temporal: every run counts as the current one, and no announcement was made. */
import type { SessionRuns } from "../../activities/contract/session-runs.ts";

export const loneRun: SessionRuns = {
  isCurrent: () => Promise.resolve(true),
  isRunning: () => Promise.resolve(false),
  cancel: () => Promise.resolve(),
  unkept: () => Promise.resolve([]),
};
