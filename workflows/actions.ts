/** The actions of the loop: each performs an activity and applies its result to the state. */
import {
  CancellationScope,
  condition,
  isCancellation,
  setCurrentDetails,
  workflowInfo,
  upsertSearchAttributes,
} from "@temporalio/workflow";
import { cutChars } from "../activities/text/cut.ts";
import { mismatchNote, LOOP_WARNING_TEXT } from "./stuck.ts";
import type {
  AgentActivities,
  ModelStepFacts,
  ModelStepInput,
  SandboxFacts,
  SessionStatus,
} from "../activities/contract/activities.ts";
import type { DeliveryOrder } from "../activities/contract/delivery.ts";
import type { Limit } from "../activities/contract/limits.ts";
import type { RunPolicy } from "../activities/contract/run-policy.ts";
import { beginAnew, type AgentState, type Phase } from "./agent-state.ts";
import { DelegateSlots } from "./delegate-slots.ts";
import { drain, putBack, tooMuch } from "./inbox.ts";
import { isHostLost, onHost } from "./lost-host.ts";
import { askedModel } from "./fallback.ts";
import { WRAP_UP_TEXT } from "./loop-policy.ts";
import { wasStopped } from "./outcome.ts";
import { currentDetails } from "./presentation.ts";
import { createAsking, unanswered, type Asking } from "./asking.ts";
import { activityOptions, perform, type Bound } from "./proxies.ts";
import { announceStop } from "./stops.ts";
import { createUnannounced, type Unannounced } from "./unannounced.ts";

export interface Run {
  readonly state: AgentState;
  /** True once `openSession` has returned. */
  opened: boolean;
  policy: RunPolicy | undefined;
  status: SessionStatus;
  /** The scope of the step in flight, which an interrupt cancels. */
  scope: CancellationScope | undefined;
  /** The container being created, in parallel with the first model step. */
  opening: Promise<void> | undefined;
  /** The questions of the step's calls. */
  readonly asking: Asking;
  /** The waiting messages that are not announced to watchers yet. */
  readonly unannounced: Unannounced;
  readonly delegates: DelegateSlots;
  /** What this run delivers, if it was started only for that. */
  readonly order: DeliveryOrder | undefined;
}

export function createRun(state: AgentState, order?: DeliveryOrder): Run {
  return {
    state,
    asking: createAsking(state.waitingCalls),
    unannounced: createUnannounced(),
    order,
    delegates: new DelegateSlots(),
    opened: false,
    policy: undefined,
    status: "active",
    scope: undefined,
    opening: undefined,
  };
}

export function showDetails(run: Run): void {
  const { runId } = workflowInfo();
  setCurrentDetails(currentDetails(run.state, run.policy, unanswered(run.asking), runId));
}

export function enterPhase(run: Run, phase: Phase): void {
  run.state.phase = phase;
  showDetails(run);
}

export function optionsOf(run: Run): ReturnType<typeof activityOptions> {
  return activityOptions(
    run.policy ?? { modelTimeoutMs: 600_000, toolTimeoutMs: 660_000, taskQueues: {} },
    run.state.sandbox?.taskQueue,
  );
}

/**
 * Moves waiting messages to Postgres while they are too many to carry: more may arrive meanwhile, so the loop
 * ends only when the rest is small enough for one activity's input or the next run's.
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

/** Runs work that an interrupt may abort. @returns undefined if it was aborted before it had a result */
export async function interruptible<T>(run: Run, body: () => Promise<T>): Promise<T | undefined> {
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

/** Cancels the step in flight and the calls that it has not started. At a step boundary there is nothing to cancel. */
export function interrupt(run: Run): void {
  if (!run.scope && !keepsInterrupt(run)) return;
  run.state.interrupting = true;
  if (run.scope) announceStop();
  run.scope?.cancel();
}

/** False for runs that were recorded when an interrupt with nothing in flight was forgotten: replay needs the old behaviour. */
export function keepsInterrupt({ policy, state }: Run): boolean {
  return policy === undefined ? state.beginsInterruptible : policy.keepsInterrupt === true;
}

/** True if the person interrupted before there was an answer: the loop continues with the queue. */
export function interrupted(run: Run, answer: ModelStepFacts | undefined): answer is undefined {
  // An interrupt that arrived together with the answer applies to the answer's calls.
  if (answer === undefined || !keepsInterrupt(run)) run.state.interrupting = false;
  return answer === undefined;
}

/**
 * The step's answer may come with another policy. A request that another model refuses before it has answered anything must fit
 * its smaller window.
 */
export function applyPolicy(run: Run, policy: RunPolicy, answer: ModelStepFacts): void {
  if (answer.policy === undefined) return;
  if (answer.kind === "overflow" && (answer.policy.model ?? policy.model) !== policy.model)
    run.state.occasion = "smaller";
  run.policy = { ...policy, ...answer.policy };
}

/** One model step, with all messages that arrived since the last one. */
export async function askModel(
  run: Run,
  { wrapUp }: { wrapUp: Limit | undefined },
): Promise<ModelStepFacts | undefined> {
  const { state } = run;
  enterPhase(run, "thinking");
  run.opening ??= openSandbox(run);
  await parkOverflow(run);
  const drained = drain(state.inbox);
  const { guidance, parked } = drained;
  if (guidance.length > 0 || parked) beginAnew(state);
  const note = noteFor(state, wrapUp);
  state.loopWarningDue = false;
  state.mismatch = undefined;
  state.notice = undefined;
  // A step boundary: the interrupted work is over, and the messages are drained.
  state.interrupting = false;
  const step = state.step + 1;
  const input = {
    step,
    round: state.round,
    ...(state.results > 0 ? { results: state.results } : {}),
    guidance,
    ...(parked ? { parked } : {}),
    ...(note ? { note } : {}),
    ...(wrapUp ? { wrapUp: true } : {}),
    ...(state.emptyAnswers > 0 || state.overflows > 0 ? { again: true as const } : {}),
    ...(run.policy?.waitsForLimits ? { waitsForLimits: true as const } : {}),
    ...(run.policy?.takesTools ? { takeTools: true as const } : {}),
    ...(run.policy ? { model: run.policy.model } : {}),
    ...askedModel(state, run.policy),
  };
  const model = `${run.policy?.model ?? ""}${state.fallback ? " (fallback)" : ""}`;
  let answer: ModelStepFacts | undefined;
  try {
    answer = await interruptible(run, async () => {
      // Servers in the sandbox can list their tools once the sandbox is open.
      if (run.policy?.takesTools === "sandbox")
        await Promise.race([run.opening, CancellationScope.current().cancelRequested]);
      return perform("modelStep", optionsOf(run), `step ${step} · ${model}`, input);
    });
    return answer;
  } finally {
    // A failed step may not have delivered its messages, so they are requeued first. Those that it did deliver are
    // recognised by their ids.
    if (answer === undefined) putBack(state.inbox, drained);
  }
}

function noteFor(state: AgentState, wrapUp: Limit | undefined): ModelStepInput["note"] {
  if (wrapUp) return { kind: "wrap-up", text: WRAP_UP_TEXT[wrapUp] };
  if (state.mismatch !== undefined) return { kind: "notice", text: mismatchNote(state.mismatch) };
  if (state.notice !== undefined) return { kind: "notice", text: state.notice };
  return state.loopWarningDue ? { kind: "nudge", text: LOOP_WARNING_TEXT } : undefined;
}

/** Never fails the run: a tool that needs the sandbox opens it again and reports what is wrong. */
export async function openSandbox(run: Run): Promise<void> {
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
    showDetails(run);
  } catch (error) {
    if (!isCancellation(error))
      run.state.remark = "The sandbox could not be opened; the first tool call tries again.";
  }
}

/** As `perform`, on the host that has the sandbox. If that host is lost, the sandbox is opened on another one. */
export function performOnHost<Name extends Bound>(
  run: Run,
  name: Name,
  summary: string,
  ...args: Parameters<AgentActivities[Name]>
): Promise<Awaited<ReturnType<AgentActivities[Name]>>> {
  return onHost(
    run,
    () => openSandbox(run),
    () => perform(name, optionsOf(run), summary, ...args),
  );
}

/** Before the session continues in a fresh history: nothing is pending, and its files are saved. */
export async function saveAndPark(run: Run): Promise<void> {
  await run.opening;
  const { step } = run.state;
  const summary = `save the workspace of step ${step}`;
  await performOnHost(run, "saveWorkspace", summary, { step });
  run.unannounced.isOver = true;
  await condition(() => !run.unannounced.isBusy);
  await parkOverflow(run);
}

/** Source: ours; the databases that clusters keep search attributes in take 255. */
const MAX_MODEL_CHARS = 200;

/** Each upsert costs an event, so only when the session's status changes. */
export function setSearchAttributes(run: Run, status: SessionStatus): void {
  upsertSearchAttributes({
    AgentPhase: [status],
    // Temporal terminates a run with more than 2 KB in one attribute, without an explanation.
    AgentModel: [cutChars(run.policy?.model ?? "", MAX_MODEL_CHARS)],
    ...(status === "active" ? {} : { AgentOutcome: [status] }),
    ...(run.policy?.tenant === undefined ? {} : { AgentTenant: [run.policy.tenant] }),
  });
}
