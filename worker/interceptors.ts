/** Adds the session to every activity's log lines. The size limit is not here: the payload converter covers more (payload-guard.ts). */
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
