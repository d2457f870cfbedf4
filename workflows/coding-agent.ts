/** The agent loop. What is decided is in loop-policy.ts, what is remembered in agent-state.ts, what is done in actions.ts. */
import { CancellationScope, CancelledFailure, continueAsNew, workflowInfo } from "@temporalio/workflow";
import type { ClosedSession } from "../activities/contract/activities.ts";
import { carry, createState, opened, stepped } from "./agent-state.ts";
import { close, keepWaiting } from "./closing.ts";
import { setHandlers } from "./handlers.ts";
import { waiting } from "./inbox.ts";
import { afterAnswer, afterOverflow, compactionDue, continueDue } from "./loop-policy.ts";
import type { CodingAgentInput } from "./messages.ts";
import { failed, failureOf, outcomeOf, type Outcome } from "./outcome.ts";
import { openSession } from "./proxies.ts";
import {
  askModel,
  compact,
  createRun,
  interrupted,
  parkOverflow,
  pruneOld,
  runTools,
  settle,
  show,
  tell,
  undoRounds,
  type Run,
} from "./actions.ts";

/** One session of the agent. The workflow's id is the session's. */
export async function codingAgent(input: CodingAgentInput = {}): Promise<ClosedSession> {
  const run = createRun(createState(input));
  setHandlers(run);
  const outcome = await work(run, input).catch(outcomeOf);
  run.status = outcome.status;
  const closed = await CancellationScope.nonCancellable(() => close(run, outcome));
  if (outcome.status === "completed" && waiting(run.state.inbox) > 0) {
    // Something was said while the session was being closed: it is taken up again, unless it was cancelled, too.
    await CancellationScope.nonCancellable(() => parkOverflow(run));
    await endIfCancelled(run);
    await continueAsNew<typeof codingAgent>({ carried: { ...carry(run.state), steps: 0 } });
  }
  if (outcome.error) throw failureOf(outcome);
  return closed;
}

async function work(run: Run, input: CodingAgentInput): Promise<Outcome> {
  const { firstExecutionRunId: chain, continuedFromExecutionRunId: continuedFrom } = workflowInfo();
  const session = await openSession({
    ...(input.task === undefined ? {} : { task: input.task }),
    chain,
    ...(input.carried ? { continuedStep: input.carried.step, continuedRound: input.carried.round } : {}),
    ...(continuedFrom === undefined ? {} : { continuedFrom }),
  });
  opened(run.state, session);
  run.opened = true;
  run.policy = session.policy;
  if (session.policy.searchAttributes) tell(run, "active");
  return loop(run, session.policy);
}

async function loop(run: Run, first: NonNullable<Run["policy"]>): Promise<Outcome> {
  const { state } = run;
  for (;;) {
    // Another model in mid-run brings another budget.
    const policy = run.policy ?? first;
    if (continueDue(history(), policy)) await continueSession(run);

    await undoRounds(run);
    const plan = afterOverflow(state.overflows, policy) ?? compactionDue(state, policy);
    if (plan) await compact(run, plan);

    const atLimit = state.steps >= policy.maxSteps;
    const answer = await askModel(run, { wrapUp: atLimit });
    if (interrupted(run, answer)) continue;
    stepped(state, answer);
    if (answer.policy) run.policy = { ...policy, ...answer.policy };
    show(run);

    if (answer.kind === "overflow") {
      state.overflows += 1;
      if (!afterOverflow(state.overflows, policy))
        return failed(
          "ContextOverflow",
          policy.autoCompaction === false
            ? "The request does not fit the model's window, and context.options.auto is false. The conversation is kept: resume with a model that has a larger window (say ID --model), or compact it first."
            : "The request does not fit the model's window, even after a summary made without a model. The conversation is kept: resume with a model that has a larger window (say ID --model).",
        );
      continue;
    }
    state.overflows = 0;
    if (answer.kind === "interrupted") continue;
    if (answer.kind === "empty") {
      state.emptyAnswers += 1;
      if (state.emptyAnswers > 1)
        return failed(
          "EmptyAnswer",
          "The model answered with nothing, twice. The conversation is kept: say something to resume.",
        );
      continue;
    }
    state.emptyAnswers = 0;

    const next = atLimit ? ({ kind: "max_steps" } as const) : afterAnswer(state, answer, policy);
    state.unfinished = next.kind === "unfinished" ? state.unfinished + 1 : 0;
    if (next.kind === "completed" || next.kind === "max_steps") return { status: next.kind };
    if (next.kind === "failed") return failed(next.type, next.message);
    if (next.kind === "again" || next.kind === "unfinished") continue;

    const stuck = await runTools(run, answer.calls);
    if (stuck)
      return failed(
        "Stuck",
        "The same call gave the same result again and again, also after a hint. The conversation is kept: say what to do differently to resume.",
      );
    await pruneOld(run, policy);
  }
}

/**
 * A cancel that came while the run closed: the new run would not hear of it. The outcome stands as it was written; what
 * was said waits for the session's next run.
 */
async function endIfCancelled(run: Run): Promise<void> {
  if (!CancellationScope.current().consideredCancelled) return;
  await CancellationScope.nonCancellable(() => keepWaiting(run));
  throw new CancelledFailure("Cancelled");
}

function history() {
  const { continueAsNewSuggested, historyLength } = workflowInfo();
  return { suggested: continueAsNewSuggested, events: historyLength };
}

/** The same session in a fresh history: only here, at a boundary, with nothing pending. */
async function continueSession(run: Run): Promise<never> {
  await settle(run);
  if (CancellationScope.current().consideredCancelled) throw new CancelledFailure("Cancelled");
  return continueAsNew<typeof codingAgent>({ carried: carry(run.state) });
}
