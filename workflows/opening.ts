/** The beginning of a run: its session is opened, and its files are there before the first step. */
import { workflowInfo } from "@temporalio/workflow";
import { type RunPolicy, givenPrecedence } from "../activities/contract/run-policy.ts";
import { applyOpened } from "./agent-state.ts";
import { fetchRepository } from "./delivery.ts";
import { waiting } from "./inbox.ts";
import { watchDeadline } from "./limits.ts";
import type { Outcome } from "./outcome.ts";
import { openSession } from "./proxies.ts";
import type { CodingAgentInput } from "./run-input.ts";
import { setSearchAttributes, type Run } from "./run.ts";
import { setUpSandbox } from "./sandbox.ts";

/** @returns the run's policy, or its outcome if there is nothing to do for the loop */
export async function openRun(run: Run, input: CodingAgentInput): Promise<RunPolicy | Outcome> {
  const { task, schedule, carried, deliver } = input;
  const { firstExecutionRunId: chain, continuedFromExecutionRunId: continuedFrom, priority } = workflowInfo();
  const session = await openSession({
    task,
    schedule,
    chain,
    continuedStep: carried?.step,
    continuedRound: carried?.compaction?.round,
    keepsCalls: carried?.waitingCalls && (true as const),
    continuedFrom,
    precedence: givenPrecedence(priority),
  });
  const { policy } = session;
  applyOpened(run.state, session);
  run.opened = true;
  run.policy = policy;
  if (policy.searchAttributes) setSearchAttributes(run, "active");
  if (session.isDone && waiting(run.state.inbox) === 0) return { status: "completed" };
  await fetchRepository(run);
  if (deliver) return deliver.outcome;
  if (session.isSpent) return { status: "max_steps", limit: "cost" };
  watchDeadline(run, policy);
  await setUpSandbox(run);
  return policy;
}
