/** A session's repository: cloned before the first step, delivered while it works and at its end, then followed. */
import {
  ChildWorkflowCancellationType,
  defineSignal,
  getExternalWorkflowHandle,
  ParentClosePolicy,
  startChild,
  workflowInfo,
} from "@temporalio/workflow";
import type { DeliveryOrder, Publication, PublishInput } from "../activities/contract/delivery.ts";
import { FOLLOW_SIGNALS, FOLLOW_WORKFLOW_TYPE, followWorkflowId } from "../activities/contract/follow.ts";
import { ownerMemo } from "../activities/contract/run-memo.ts";
import { isUnverified } from "../activities/contract/verify.ts";
import { heldBack } from "./verify.ts";
import { showDetails, type Run } from "./run.ts";
import { openSandbox, performOnHost } from "./sandbox.ts";
import { messageOf, wasStopped, type Outcome } from "./outcome.ts";

/** The shortest time between two pushes of a working session. Chosen: a branch that is a minute behind loses little. */
const PUSH_EVERY_MS = 60_000;

/** Puts the repository's files into the sandbox, if that was not done yet. */
export async function fetchRepository(run: Run): Promise<void> {
  if (run.policy?.git?.fetch !== true) return;
  const step = run.state.step + 1;
  run.opening ??= openSandbox(run);
  await run.opening;
  await performOnHost(run, "fetchRepository", "clone the repository", { step });
}

/** Before the step that reads what is wrong with the session's pull request. */
export async function refreshCheckout(run: Run): Promise<void> {
  if (run.policy?.git?.refresh !== true) return;
  const step = run.state.step + 1;
  await performOnHost(run, "refreshCheckout", "fetch the pull request's newest commits", { step });
}

/** The follower starts once the pull request is open, and looks again when a run has ended. Nothing here may keep the run from ending. */
export async function tellFollower({ policy, hasOpened }: Run): Promise<void> {
  const follow = policy?.git?.follow;
  if (follow === undefined || (follow === "from-opening" && !hasOpened)) return;
  const workflowId = followWorkflowId(workflowInfo().workflowId);
  try {
    if (follow === "on")
      return await getExternalWorkflowHandle(workflowId).signal(defineSignal(FOLLOW_SIGNALS.woken));
    await startChild(FOLLOW_WORKFLOW_TYPE, {
      workflowId,
      parentClosePolicy: ParentClosePolicy.ABANDON,
      cancellationType: ChildWorkflowCancellationType.ABANDON,
      memo: ownerMemo(workflowInfo().memo),
      args: [{}],
      staticSummary: "the pull request is followed until it is merged",
    });
  } catch (error) {
    // It has ended, or was started by an attempt that was reset. Its next look finds what this run did.
    if (wasStopped(error)) throw error;
  }
}

/** Pushes the commits so far, at most once a minute. A failure is retried with the next push. */
export async function pushSaves(run: Run): Promise<void> {
  const { state, policy } = run;
  if (policy?.git?.push !== "saves" || Date.now() - state.delivery.pushedAtMs < PUSH_EVERY_MS) return;
  try {
    await publish(run, { kind: "push", summary: `step ${state.step} · push` });
  } catch (error) {
    if (wasStopped(error)) throw error;
    state.remark = `The commits so far could not be pushed: ${messageOf(error)}`;
  }
  state.delivery.pushedAtMs = Date.now();
}

/**
 * Delivers the session's work if it ended by itself. Nothing here may keep the run from ending.
 * @returns why it was not delivered, unless a row records that
 */
export async function deliver(run: Run, outcome: Outcome): Promise<string | undefined> {
  const deliveryOrder = run.order ?? orderOf(run, outcome);
  if (!run.opened || deliveryOrder === undefined) return undefined;
  const { branch, title } = deliveryOrder;
  const more = branch === undefined ? {} : { branch };
  // What a person orders is delivered as it is.
  const isOwnEnd = run.order === undefined;
  const withheld = isOwnEnd ? heldBack(run, outcome) : undefined;
  if (withheld !== undefined) return withheld;
  if (isOwnEnd && run.policy?.git?.review === true) return deliverReview(run, outcome);
  const verified = isOwnEnd ? outcome.verified : undefined;
  const hasFailed = isUnverified(verified?.outcome, run.policy?.verify ?? {});
  try {
    if (deliveryOrder.push) {
      const tree = deliveryOrder.tree ?? (hasFailed ? undefined : verified?.tree);
      const pushed = await publish(run, { kind: "push", end: true, ...more, tree, summary: "end · push" });
      if (pushed.outcome === "refused") return undefined;
    }
    if (deliveryOrder.pr === "none") return undefined;
    const opened = await publish(run, {
      kind: "pull-request",
      ...more,
      draft: deliveryOrder.pr === "draft" || hasFailed ? true : undefined,
      title,
      summary: "end · pull request",
    });
    if (opened.outcome === "done") run.hasOpened = true;
    return undefined;
  } catch (failure) {
    return messageOf(failure);
  }
}

/** Only an answer that completes the task is a review. */
async function deliverReview(run: Run, { status }: Outcome): Promise<string | undefined> {
  if (status !== "completed") return undefined;
  try {
    await publish(run, { kind: "review", summary: "end · review" });
    return undefined;
  } catch (failure) {
    return messageOf(failure);
  }
}

/** The work of a run that failed or was cancelled is not delivered: it stays in the session's files, for `push`. */
function orderOf({ policy }: Run, { status }: Outcome): DeliveryOrder | undefined {
  if (policy?.git === undefined || (status !== "completed" && status !== "max_steps")) return undefined;
  const { push, pr } = policy.git;
  return { push: push !== "never", pr };
}

async function publish(
  run: Run,
  { summary, ...publication }: { readonly summary: string } & Omit<PublishInput, "step">,
): Promise<Publication> {
  const line = `${summary} ${publication.branch ?? run.policy?.git?.branch ?? ""}`;
  const published = await performOnHost(run, "publish", line, { step: run.state.step, ...publication });
  run.state.delivery.last = wordsOf(published) ?? run.state.delivery.last;
  showDetails(run);
  return published;
}

function wordsOf({ outcome, branch, commit, url, reason }: Publication): string | undefined {
  if (outcome === "nothing") return undefined;
  if (outcome === "refused") return `${branch} not delivered: ${reason ?? ""}`;
  return url === undefined
    ? `${branch} pushed at ${(commit ?? "").slice(0, 12)}`
    : `${branch} · pull request ${url}`;
}
