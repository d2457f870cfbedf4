/** All activities, bound to what they are given. Binds and nothing else. */
import type { AgentActivities } from "./contract/activities.ts";
import type { BatchActivities } from "./contract/batch.ts";
import { createAskPerson } from "./ask-person.ts";
import { createAskBudget } from "./ask-budget.ts";
import { createBackgroundSaves } from "./workspace/background-save.ts";
import { createCloseSession } from "./close-session.ts";
import type { AgentDeps } from "./runtime/deps.ts";
import { createFetchRepository } from "./fetch-repository.ts";
import { createMarkWaiting } from "./mark-waiting.ts";
import { createModelStep } from "./model-step.ts";
import { createNotify } from "./notify.ts";
import { createOpenSession } from "./open-session.ts";
import { createOpenDelegate } from "./open-delegate.ts";
import { createParkGuidance } from "./park-guidance.ts";
import { createPrune } from "./prune.ts";
import { createPublish } from "./publish.ts";
import { createRunTool } from "./run-tool.ts";
import { createSandboxLifecycle } from "./sandbox-lifecycle.ts";
import { createSettleBudget } from "./settle-budget.ts";
import { createSettleQuestion } from "./settle-question.ts";
import { createSessionSandboxes } from "./workspace/session-sandbox.ts";
import { createSetUpSandbox } from "./set-up-sandbox.ts";
import { createSetUps, withSetUp } from "./workspace/set-up.ts";
import { createSettleDelegate } from "./settle-delegate.ts";
import { createSummarize } from "./summarize.ts";
import { createAnnounceQueued } from "./announce-queued.ts";
import { createUndoCompaction } from "./undo-compaction.ts";
import { createBatchActivities } from "./work-batch.ts";

export function createActivities(deps: AgentDeps): AgentActivities & BatchActivities {
  const sandboxes = createSessionSandboxes(deps);
  const setUps = createSetUps(deps);
  const saves = createBackgroundSaves();
  return {
    openSession: createOpenSession(deps),
    fetchRepository: createFetchRepository(deps, sandboxes),
    setUpSandbox: createSetUpSandbox(deps, sandboxes, setUps),
    publish: createPublish(deps, sandboxes),
    parkGuidance: createParkGuidance(deps),
    announceQueued: createAnnounceQueued(deps),
    modelStep: createModelStep(deps),
    runTool: createRunTool(deps, withSetUp(sandboxes, setUps), saves),
    askPerson: createAskPerson(deps),
    settleQuestion: createSettleQuestion(deps),
    askBudget: createAskBudget(deps),
    settleBudget: createSettleBudget(deps),
    notify: createNotify(deps),
    markWaiting: createMarkWaiting(deps),
    openDelegate: createOpenDelegate(deps, sandboxes, saves),
    settleDelegate: createSettleDelegate(deps, sandboxes, saves),
    summarize: createSummarize(deps),
    undoCompaction: createUndoCompaction(deps),
    prune: createPrune(deps),
    ...createSandboxLifecycle(deps, sandboxes, saves),
    closeSession: createCloseSession(deps),
    ...createBatchActivities(deps),
  };
}

export type { AgentDeps } from "./runtime/deps.ts";
