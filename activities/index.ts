/** All activities, bound to what they are given. Binds and nothing else. */
import type { AgentActivities } from "./contract/activities.ts";
import type { BatchActivities } from "./contract/batch.ts";
import type { FollowActivities } from "./contract/follow.ts";
import type { WarmActivities } from "./contract/warm.ts";
import { createCheckCommands, lookWhereOpen } from "./workspace/background-commands.ts";
import { createAskPerson } from "./questions/ask-person.ts";
import { createAskBudget, createSettleBudget } from "./questions/budget.ts";
import { createBackgroundSaves } from "./workspace/background-save.ts";
import { createBeginWait } from "./waits/begin-wait.ts";
import { createEndWait, createWatchSandbox } from "./waits/end-wait.ts";
import { createCloseSession } from "./session/close-session.ts";
import type { AgentDeps } from "./runtime/deps.ts";
import { createFollowActivities } from "./follow/follow-pull-request.ts";
import { createFetchRepository } from "./session/fetch-repository.ts";
import { createMarkWaiting, createNotify } from "./session/waiting.ts";
import { createModelStep } from "./step/model-step.ts";
import { createOpenSession } from "./session/open-session.ts";
import { createOpenDelegate } from "./delegates/open-delegate.ts";
import { createStoreGuidance } from "./step/guidance.ts";
import { createPrune } from "./step/prune.ts";
import { createPublish } from "./session/publish.ts";
import { createRefreshCheckout } from "./follow/refresh-checkout.ts";
import { createRunTool } from "./step/run-tool.ts";
import { createSandboxLifecycle } from "./session/sandbox-lifecycle.ts";
import { createSettleQuestion } from "./questions/settle-question.ts";
import { createSessionSandboxes } from "./workspace/session-sandbox.ts";
import { createSessionServices, withRunningServices } from "./workspace/services.ts";
import { createSetUps, withSetUp } from "./workspace/set-up.ts";
import { createSettleDelegate } from "./delegates/settle-delegate.ts";
import { createSummarize } from "./step/summarize.ts";
import { createUndoCompaction } from "./step/store-compaction.ts";
import { createVerifyWork } from "./verify/verify-work.ts";
import { createBatchActivities } from "./session/work-batch.ts";
import { createWarmActivities } from "./warm/warm-repository.ts";

export function createActivities(
  deps: AgentDeps,
): AgentActivities & BatchActivities & FollowActivities & WarmActivities {
  const sandboxes = createSessionSandboxes(deps);
  const services = createSessionServices(deps);
  const ready = withRunningServices(withSetUp(sandboxes, createSetUps(deps, services.ensure)), services);
  const saves = createBackgroundSaves();
  return {
    openSession: createOpenSession(deps),
    fetchRepository: createFetchRepository(deps, sandboxes),
    refreshCheckout: createRefreshCheckout(deps, sandboxes),
    verifyWork: createVerifyWork(deps, ready),
    publish: createPublish(deps, sandboxes),
    storeGuidance: createStoreGuidance(deps),
    modelStep: createModelStep(deps, { services, look: lookWhereOpen(deps, sandboxes) }),
    runTool: createRunTool(deps, ready, saves, services),
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
    ...createSandboxLifecycle(deps, sandboxes, ready, saves),
    checkCommands: createCheckCommands(deps, sandboxes),
    beginWait: createBeginWait(deps),
    watchSandbox: createWatchSandbox(deps, ready),
    endWait: createEndWait(deps),
    closeSession: createCloseSession(deps),
    ...createBatchActivities(deps),
    ...createFollowActivities(deps),
    ...createWarmActivities(deps),
  };
}

export type { AgentDeps } from "./runtime/deps.ts";
