/** What every activity's log lines carry. The size guard is not here: the payload converter covers more (payload-guard.ts). */
import type { ActivityInterceptorsFactory } from "@temporalio/worker";

export const activityInterceptors: ActivityInterceptorsFactory = (context) => ({
  outbound: {
    getLogAttributes: (input, next) =>
      next({
        ...input,
        sessionId: context.info.workflowExecution?.workflowId,
        activity: context.info.activityType,
        attempt: context.info.attempt,
      }),
  },
});
