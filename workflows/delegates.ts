/** Calls of `delegate`: each runs as a session of its own, a child workflow whose result is read from Postgres. */
import type {
  RunToolInput,
  ToolFacts,
  DelegateEnd,
  SettleDelegateInput,
} from "../activities/contract/calls.ts";
import { ownerMemo } from "../activities/contract/run-memo.ts";
import {
  CancellationScope,
  ChildWorkflowCancellationType,
  ChildWorkflowFailure,
  isCancellation,
  ParentClosePolicy,
  sleep,
  startChild,
  TerminatedFailure,
  workflowInfo,
} from "@temporalio/workflow";
import { WorkflowExecutionAlreadyStartedError } from "@temporalio/common";
import type { CallFacts } from "../activities/contract/activities.ts";
import { type Run } from "./run.ts";
import { performOnHost } from "./sandbox.ts";
import type { Turn } from "./delegate-slots.ts";
import { WORKFLOW_TYPE } from "./messages.ts";
import { titled } from "./presentation.ts";
import { boundedSummary } from "./proxies.ts";

/** Poll interval for a delegate that must stop, in ms: Temporal may have lost its end (temporalio/temporal#10639). */
const STOPPING_LOOK_MS = 5_000;

/** One call of `delegate`, when its turn has come. A step's calls must come here in their order. */
export async function delegateTask(run: Run, call: CallFacts, input: RunToolInput): Promise<ToolFacts> {
  const { maxConcurrent = 1, lookMs = 300_000 } = run.policy?.delegates ?? {};
  const turn = run.delegates.turn();
  try {
    await run.delegates.enter(maxConcurrent);
    try {
      return await runDelegate(run, call, input, { turn, lookMs });
    } finally {
      run.delegates.leave();
    }
  } finally {
    turn.end();
  }
}

async function runDelegate(
  run: Run,
  call: CallFacts,
  input: RunToolInput,
  { turn, lookMs }: { readonly turn: Turn; readonly lookMs: number },
): Promise<ToolFacts> {
  const summary = titled(`step ${input.step} · delegate`, call);
  const { step, index } = input;
  // From here on the delegate is followed to its end: a claimed call is not left without a result.
  const opened = await CancellationScope.nonCancellable(() =>
    performOnHost(run, "openDelegate", summary, { step, index }),
  );
  if (opened.kind === "settled") return opened.facts;
  if (opened.access === "read") turn.end();
  const settle = async (more: Pick<SettleDelegateInput, "closed" | "stopped">) => {
    // If two delegates changed the same file, the earlier call's version is merged.
    if (more.closed !== undefined) await turn.before;
    return CancellationScope.nonCancellable(() =>
      performOnHost(run, "settleDelegate", summary, { ...input, child: opened.child, ...more }),
    );
  };
  let closing = await start(opened.child, call);
  const follow = async (stopped?: SettleDelegateInput["stopped"]): Promise<ToolFacts> => {
    for (;;) {
      const end = await closedOrLook(closing, stopped === undefined ? lookMs : STOPPING_LOOK_MS);
      const settled = await settle({
        closed: end,
        stopped,
      });
      if (settled.kind === "settled") return settled.facts;
      // The delegate's run was reset, and another run continues, whose end may not be reported.
      if (end !== undefined) closing = NEVER_REPORTED;
      if (settled.kind === "again") closing = await start(opened.child, call);
    }
  };
  try {
    return await follow();
  } catch (error) {
    if (!isCancellation(error)) throw error;
    const stopped = run.state.interrupting ? "interrupt" : "cancel";
    const ended = CancellationScope.nonCancellable(() => follow(stopped));
    if (stopped === "interrupt") return ended;
    // Meanwhile the run closes its sandbox.
    run.delegates.closeWith(ended);
    throw error;
  }
}

/** How a delegate closes. */
interface Closing {
  readonly end: Promise<DelegateEnd>;
}

/** For a delegate whose end is not reported: only polling finds it. */
const NEVER_REPORTED: Closing = { end: new Promise(() => undefined) };

/** @returns how it closes. If this run was reset, `end` may never resolve, and polling finds the end. Never rejects */
async function start(child: string, call: CallFacts): Promise<Closing> {
  try {
    const handle = await startChild(WORKFLOW_TYPE, {
      workflowId: child,
      args: [{}],
      // A parent that is terminated or reset runs no code of its own; its delegates end gracefully. Both also hold when a
      // parent continues as new, which it does with none open.
      parentClosePolicy: ParentClosePolicy.REQUEST_CANCEL,
      cancellationType: ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED,
      staticSummary: boundedSummary(call.about || "delegate"),
      memo: ownerMemo(workflowInfo().memo),
    });
    return { end: handle.result().then((): DelegateEnd => "completed", endOf) };
  } catch (error) {
    if (error instanceof WorkflowExecutionAlreadyStartedError) return NEVER_REPORTED;
    if (isCancellation(error)) return { end: Promise.resolve("not-started") };
    throw error;
  }
}

function endOf(error: unknown): DelegateEnd {
  const cause = error instanceof ChildWorkflowFailure ? error.cause : error;
  if (isCancellation(cause)) return "cancelled";
  return cause instanceof TerminatedFailure ? "terminated" : "failed";
}

/** @returns undefined if it is time to poll */
async function closedOrLook({ end }: Closing, lookMs: number): Promise<DelegateEnd | undefined> {
  return CancellationScope.cancellable(async () => {
    const timer = sleep(lookMs).then(() => undefined);
    try {
      return await Promise.race([end, timer]);
    } finally {
      timer.catch(() => undefined);
      CancellationScope.current().cancel();
    }
  });
}
