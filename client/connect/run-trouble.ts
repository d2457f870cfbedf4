/** What keeps a run from going on, from Temporal: our own rows may lack it, if writing rows is what fails. */
import type { Client } from "@temporalio/client";
import type { DescribedRun } from "../../temporal/described-run.ts";
import { oneLine } from "../console/format.ts";

const WORKFLOW = "the workflow";
/** The newest end of a workflow task is among them, whatever else was sent since. */
const NEWEST_EVENTS = 200;

/** An activity that fails repeatedly, or else the workflow itself, in words. */
export async function troubleOf(
  client: Client,
  sessionId: string,
  run: DescribedRun,
): Promise<string | undefined> {
  return activityTrouble(run) ?? (await workflowTrouble(client, sessionId, run));
}

/** Whether workers fail at the workflow: it takes no message and answers no query. */
export const isOfWorkflow = (trouble: string | null | undefined): boolean =>
  trouble?.startsWith(`${WORKFLOW}, `) === true;

function activityTrouble({ raw }: DescribedRun): string | undefined {
  const failing = raw.pendingActivities?.find(
    ({ attempt, lastFailure }) =>
      (attempt ?? 1) > 1 && lastFailure && lastFailure.applicationFailureInfo?.type !== "NotYetDue",
  );
  if (!failing?.lastFailure) return undefined;
  const name = failing.activityType?.name ?? "an activity";
  return `${name}, attempt ${failing.attempt}: ${failureText(failing.lastFailure)}`;
}

/** Such as a worker that lacks the key of the run's data, or whose code does not fit the run's history. */
async function workflowTrouble(
  { workflowService, options: { namespace } }: Client,
  workflowId: string,
  { raw, runId }: DescribedRun,
): Promise<string | undefined> {
  const attempt = raw.pendingWorkflowTask?.attempt ?? 1;
  if (attempt < 2) return undefined;
  const { history } = await workflowService.getWorkflowExecutionHistoryReverse({
    namespace,
    execution: { workflowId, runId },
    maximumPageSize: NEWEST_EVENTS,
  });
  const newest = history?.events?.find(
    (event) =>
      event.workflowTaskFailedEventAttributes ??
      event.workflowTaskTimedOutEventAttributes ??
      event.workflowTaskCompletedEventAttributes,
  );
  // Only the first of several failures in a row is in the history.
  const failure = newest?.workflowTaskFailedEventAttributes?.failure;
  return failure ? `${WORKFLOW}, attempt ${attempt}: ${failureText(failure)}` : undefined;
}

type Failure = NonNullable<NonNullable<DescribedRun["raw"]["pendingActivities"]>[number]["lastFailure"]>;

/** The message of an encrypted failure says only that it is one. */
function failureText({ message, applicationFailureInfo, encodedAttributes }: Failure): string {
  const type = applicationFailureInfo?.type ?? "failed";
  return oneLine(encodedAttributes ? type : `${type}: ${message ?? ""}`, 300);
}
