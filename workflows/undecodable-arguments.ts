/**
 * What happens to arguments that could not be decoded: the signal counts without them and the run says so; a start with
 * them fails with a typed error. Temporal loads this file by the name of its export, as an interceptor.
 */
import { ApplicationFailure } from "@temporalio/common";
import type { WorkflowInterceptors } from "@temporalio/workflow";
import { Undecodable } from "../activities/contract/undecodable.ts";
import { startRefusal } from "./run-input.ts";
import { thisRun } from "./this-run.ts";

/** The name is Temporal's. */
export function interceptors(): WorkflowInterceptors {
  return {
    inbound: [
      {
        handleSignal(input, next) {
          const bad = input.args.find((argument) => argument instanceof Undecodable);
          if (bad === undefined) return next(input);
          thisRun().showRemark?.(
            `The argument of the signal ${input.signalName} was ignored: it could not be decoded (${bad.description}). Send JSON.`,
          );
          return next({
            ...input,
            args: input.args.filter((argument) => !(argument instanceof Undecodable)),
          });
        },
        async execute(input, next) {
          const reason = startRefusal(input.args[0]);
          if (reason !== undefined)
            throw ApplicationFailure.nonRetryable(
              `The run was not started: ${reason}. Nothing was done. Start it with the client, or with {"task": "…"} as JSON.`,
              "BadConfiguration",
            );
          return next(input);
        },
      },
    ],
  };
}
