/** What the loop does: each verb one line there, here its activity and what the state learns from it. */
import {
  CancellationScope,
  isCancellation,
  setCurrentDetails,
  upsertSearchAttributes,
} from "@temporalio/workflow";
import { pruneDue } from "../activities/contract/prune-due.ts";
import { NUDGE_TEXT, stuckVerdict } from "../activities/contract/stuck.ts";
import type {
  CallFacts,
  ModelStepFacts,
  ModelStepInput,
  RunPolicy,
  SandboxFacts,
  SessionStatus,
} from "../activities/contract/activities.ts";
import { compacted, pruned, ran, undone, type AgentState, type Phase } from "./agent-state.ts";
import { drain, tooMuch } from "./inbox.ts";
import { isHostLost, onHost } from "./lost-host.ts";
import { WRAP_UP_TEXT, type CompactionPlan } from "./loop-policy.ts";
import { wasStopped } from "./outcome.ts";
import { currentDetails } from "./presentation.ts";
import { activityOptions, perform } from "./proxies.ts";

export interface Run {
  readonly state: AgentState;
  /** True once `openSession` has returned. */
  opened: boolean;
  policy: RunPolicy | undefined;
  status: SessionStatus;
  /** Of the step in flight: what an interrupt cancels. */
  scope: CancellationScope | undefined;
  /** The container on its way, beside the first model step. */
  opening: Promise<void> | undefined;
}

export function createRun(state: AgentState): Run {
  return {
    state,
    opened: false,
    policy: undefined,
    status: "active",
    scope: undefined,
    opening: undefined,
  };
}

export function show(run: Run): void {
  setCurrentDetails(currentDetails(run.state, run.policy));
}

export function enter(run: Run, phase: Phase): void {
  run.state.phase = phase;
  show(run);
}

export function optionsOf(run: Run): ReturnType<typeof activityOptions> {
  return activityOptions(
    run.policy ?? { modelTimeoutMs: 600_000, toolTimeoutMs: 660_000, taskQueues: {} },
    run.state.sandbox?.taskQueue,
  );
}

/**
 * Moves waiting messages to Postgres while they are too many to carry: more may come while some are moved, so what is
 * left when this returns is small enough for one activity's input or the next run's.
 */
export async function parkOverflow(run: Run): Promise<void> {
  const { inbox } = run.state;
  for (let lists = tooMuch(inbox); lists; lists = tooMuch(inbox)) {
    for (const items of lists) {
      await perform("parkGuidance", optionsOf(run), `park ${items.length} messages`, { items });
      inbox.queue.splice(0, items.length);
      inbox.parked += items.length;
    }
  }
}

/** Runs what an interrupt may abort. @returns undefined where it was aborted before it had a result */
async function interruptible<T>(run: Run, body: () => Promise<T>): Promise<T | undefined> {
  try {
    return await CancellationScope.cancellable(async () => {
      run.scope = CancellationScope.current();
      return body();
    });
  } catch (error) {
    if (run.state.interrupting && wasStopped(error)) return undefined;
    throw error;
  } finally {
    run.scope = undefined;
  }
}

/** Ends what the step has in flight, and keeps what it has not begun from beginning. At a step boundary nothing is left to end. */
export function interrupt(run: Run): void {
  if (!run.scope && !keepsInterrupt(run)) return;
  run.state.interrupting = true;
  run.scope?.cancel();
}

/** Runs whose policy does not say so were recorded when an interrupt with nothing in flight was forgotten. */
function keepsInterrupt({ policy }: Run): boolean {
  return policy?.keepsInterrupt === true;
}

/** True where the person interrupted before there was an answer: the loop goes on with the queue. */
export function interrupted(run: Run, answer: ModelStepFacts | undefined): answer is undefined {
  // One that came with the answer is for the calls that it asks for.
  if (answer === undefined || !keepsInterrupt(run)) run.state.interrupting = false;
  return answer === undefined;
}

/** One model step, with all that was said since the last one. */
export async function askModel(
  run: Run,
  { wrapUp }: { wrapUp: boolean },
): Promise<ModelStepFacts | undefined> {
  const { state } = run;
  enter(run, "thinking");
  run.opening ??= openSandbox(run);
  await parkOverflow(run);
  const { guidance, parked } = drain(state.inbox);
  if (guidance.length > 0 || parked) state.recentCalls = [];
  const note: ModelStepInput["note"] = wrapUp
    ? { kind: "wrap-up", text: WRAP_UP_TEXT }
    : state.nudge
      ? { kind: "nudge", text: NUDGE_TEXT }
      : undefined;
  state.nudge = false;
  // The boundary: what interrupts were for is over, and their messages are drained.
  state.interrupting = false;
  const step = state.step + 1;
  const input = {
    step,
    round: state.round,
    guidance,
    ...(parked ? { parked } : {}),
    ...(note ? { note } : {}),
    ...(wrapUp ? { wrapUp } : {}),
    ...(run.policy ? { model: run.policy.model } : {}),
  };
  const model = run.policy?.model ?? "";
  let answer: ModelStepFacts | undefined;
  try {
    answer = await interruptible(run, () =>
      perform("modelStep", optionsOf(run), `step ${step} · ${model}`, input),
    );
    return answer;
  } finally {
    // A step that came to nothing may not have delivered its messages: they wait again, in front. Those that it did
    // deliver are told by their ids.
    if (answer === undefined) {
      state.inbox.queue.unshift(...guidance);
      if (parked) state.inbox.parked = Math.max(1, state.inbox.parked);
    }
  }
}

/** Never fails the run by itself: a tool that needs the sandbox opens it again, and says what is wrong. */
async function openSandbox(run: Run): Promise<void> {
  const step = run.state.step + 1;
  const open = (): Promise<SandboxFacts> =>
    perform("openSandbox", optionsOf(run), "open the sandbox", { step });
  try {
    const { container, taskQueue } = await open().catch((error: unknown) => {
      if (run.state.sandbox === undefined || !isHostLost(error)) throw error;
      run.state.sandbox = undefined;
      return open();
    });
    run.state.sandbox = { container, taskQueue };
    show(run);
  } catch (error) {
    if (!isCancellation(error))
      run.state.remark = "The sandbox could not be opened; the first tool call tries again.";
  }
}

/** All calls of a step at once; returns when each has its result. @returns true where the agent is stuck for good */
export async function runTools(run: Run, calls: readonly CallFacts[]): Promise<boolean> {
  const { state } = run;
  enter(run, "running tools");
  if (!keepsInterrupt(run)) await run.opening;
  const { step } = state;
  await interruptible(run, async () => {
    const scope = CancellationScope.current();
    if (state.interrupting) scope.cancel();
    // The sandbox may take minutes: a person who interrupts does not wait for it.
    await Promise.race([run.opening, scope.cancelRequested]);
    const results = await Promise.allSettled(
      calls.map(async (call, index) => {
        const summary = `step ${step} · ${call.name}: ${call.about}`;
        const facts = await onHost(
          run,
          () => openSandbox(run),
          () => perform("runTool", optionsOf(run), summary, { step, index }),
        );
        ran(state, call, facts);
        show(run);
      }),
    );
    const failure = results.find((result) => result.status === "rejected");
    if (failure) throw failure.reason;
  });
  state.interrupting = false;
  const verdict = stuckVerdict(state.recentCalls, state.nudged);
  if (verdict === "nudge") {
    state.nudge = true;
    state.nudged = true;
    state.recentCalls = [];
  }
  return verdict === "stop";
}

/** Before the session goes on in a fresh history: nothing is pending, and its files are saved. */
export async function settle(run: Run): Promise<void> {
  await run.opening;
  const { step } = run.state;
  const summary = `save the workspace of step ${step}`;
  await onHost(
    run,
    () => openSandbox(run),
    () => perform("saveWorkspace", optionsOf(run), summary, { step }),
  );
  await parkOverflow(run);
}

export async function compact(run: Run, plan: CompactionPlan): Promise<void> {
  const { state } = run;
  enter(run, "compacting");
  state.compactRequest = undefined;
  state.interrupting = false;
  const round = state.round + 1;
  const input = { step: state.step + 1, round, ...plan };
  const facts = await interruptible(run, () =>
    perform("summarize", optionsOf(run), `compaction round ${round} · ${plan.trigger}`, input),
  );
  state.interrupting = false;
  if (facts) compacted(state, facts);
}

/** Takes back as many rounds as a person asked for since the last step. */
export async function undoRounds(run: Run): Promise<void> {
  const { state } = run;
  for (let requestId = state.undoRequests[0]; requestId !== undefined; requestId = state.undoRequests[0]) {
    enter(run, "compacting");
    const input = { step: state.step + 1, requestId };
    undone(
      state,
      await perform("undoCompaction", optionsOf(run), "take the newest compaction round back", input),
    );
    state.undoRequests.shift();
  }
}

export async function pruneOld(run: Run, policy: RunPolicy): Promise<void> {
  const { state } = run;
  const { used: usedTokens, prunable, growth: growthTokens } = state.context;
  if (
    !pruneDue({ usedTokens, prunableTokens: prunable, growthTokens }, policy.budget, policy.prune ?? "always")
  )
    return;
  enter(run, "pruning");
  pruned(state, await perform("prune", optionsOf(run), "prune old tool results", { step: state.step }));
}

/** Search attributes cost an event each: only when a phase of the session's life begins. */
export function tell(run: Run, status: SessionStatus): void {
  upsertSearchAttributes({
    AgentPhase: [status],
    AgentModel: [run.policy?.model ?? ""],
    ...(status === "active" ? {} : { AgentOutcome: [status] }),
  });
}
