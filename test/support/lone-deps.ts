/** What activities are given that are called without Temporal and without other processes. */
import { MockActivityEnvironment } from "@temporalio/testing";
import { DefaultLogger } from "@temporalio/worker";
import type { SessionRuns } from "../../activities/contract/session-runs.ts";
import { createSanitizer } from "../../activities/redaction/sanitizer.ts";
import type { AgentDeps } from "../../activities/runtime/deps.ts";
import type { Announcements } from "../../activities/store/announcements.ts";
import type { Store } from "../../activities/store/db.ts";
import { Suspects } from "../../activities/runtime/lost-attempts.ts";
import { CountedSaves } from "../../activities/runtime/counted-saves.ts";
import { toolRegistry } from "../../activities/tools/index.ts";

/** Every run counts as the current one. */
export const loneRun: SessionRuns = {
  isCurrent: () => Promise.resolve(true),
  isRunning: () => Promise.resolve(false),
  cancel: () => Promise.resolve(),
  unkept: () => Promise.resolve([]),
  said: () => Promise.resolve([]),
  finished: () => Promise.resolve(0),
  newestEnded: () => Promise.resolve(undefined),
  origin: () => Promise.resolve(undefined),
};

/** Announces nothing, and counts every session as watched. */
export const silentAnnouncements: Announcements = {
  isWatched: () => true,
  onWatched: () => () => undefined,
  announceStop: () => undefined,
  onStop: () => () => undefined,
  sessionsAtWork: () => [],
};

/** @param changes what differs; without a host there is no sandbox */
export function loneDeps(store: Store, changes: Pick<AgentDeps, "model"> & Partial<AgentDeps>): AgentDeps {
  const suspects = new Suspects();
  return {
    store,
    suspects,
    countedSaves: new CountedSaves(store.db, suspects),
    announcements: silentAnnouncements,
    // It can do nothing, and knows no reason against an image.
    sandboxHost: {} as never,
    sessionRuns: loneRun,
    sanitizer: createSanitizer([]),
    tools: toolRegistry,
    defaultConfig: undefined,
    heartbeatMs: 1_000,
    searchAttributes: false,
    taskQueues: {},
    ...changes,
  };
}

/** An activity's attempt for a session's run, with a log of errors only. */
export function attemptOf(workflowId: string, runId: string, attempt = 1): MockActivityEnvironment {
  const info = { attempt, workflowExecution: { workflowId, runId } };
  return new MockActivityEnvironment(info, { logger: new DefaultLogger("ERROR") });
}
