/** A run in memory, and what every part of the loop does with it: show it, interrupt it, store its messages. */
import { cutChars } from "../activities/text/cut.ts";
import {
  CancellationScope,
  setCurrentDetails,
  workflowInfo,
  upsertSearchAttributes,
  proxySinks,
  type Sinks,
} from "@temporalio/workflow";
import type { SessionStatus } from "../activities/contract/activities.ts";
import type { DeliveryOrder } from "../activities/contract/delivery.ts";
import type { RunPolicy } from "../activities/contract/run-policy.ts";
import { createState, type AgentState, type Phase } from "./agent-state.ts";
import type { CodingAgentInput } from "./run-input.ts";
import { DelegateSlots } from "./delegate-slots.ts";
import { markStored, nextToStore, waiting } from "./inbox.ts";
import { wasStopped } from "./outcome.ts";
import { currentDetails } from "./presentation.ts";
import { createAsking, unanswered, type Asking, type OpenWait } from "./asking.ts";
import { activityOptions, perform } from "./proxies.ts";

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
  /** The wait that the model asked for, while it lasts. */
  wait: OpenWait | undefined;
  /** The messages that have arrived are being stored. */
  storing: Promise<void> | undefined;
  readonly delegates: DelegateSlots;
  /** What this run delivers, if it was started only for that. */
  readonly order: DeliveryOrder | undefined;
  /** It has opened the session's pull request, or written into it. */
  hasOpened: boolean;
}

export function createRun(input: CodingAgentInput): Run {
  const state = createState(input);
  return {
    state,
    asking: createAsking(state.waitingCalls),
    wait: undefined,
    storing: undefined,
    order: input.deliver?.order,
    delegates: new DelegateSlots(),
    opened: false,
    hasOpened: false,
    policy: undefined,
    status: "active",
    scope: undefined,
    opening: undefined,
  };
}

export function showDetails(run: Run): void {
  const { runId } = workflowInfo();
  setCurrentDetails(
    currentDetails(
      run.state,
      run.policy,
      [...unanswered(run.asking), ...run.state.later.filter(({ settlement }) => settlement === undefined)],
      { runId, wait: run.wait },
    ),
  );
}

export function enterPhase(run: Run, phase: Phase): void {
  run.state.phase = phase;
  showDetails(run);
}

export function optionsOf(run: Run): ReturnType<typeof activityOptions> {
  return activityOptions(
    run.policy ?? { timeouts: { modelMs: 600_000, toolMs: 660_000 }, taskQueues: {} },
    run.state.sandbox?.taskQueue,
  );
}

/** Whether messages of people wait for this run. */
export const hasMessages = ({ state }: Run): boolean => waiting(state.inbox) > 0;

/**
 * Stores the messages that have arrived, in order, one activity at a time, also those that arrive meanwhile: with its return none is
 * left in memory alone. A cancelled run stores them too.
 */
export async function storeArrived(run: Run): Promise<void> {
  const { inbox } = run.state;
  while (inbox.arrived.length > 0) {
    run.storing ??= CancellationScope.nonCancellable(() => storeSome(run)).finally(
      () => (run.storing = undefined),
    );
    await run.storing;
  }
}

async function storeSome(run: Run): Promise<void> {
  const { inbox, step } = run.state;
  const items = nextToStore(inbox);
  const { over } = await perform("storeGuidance", optionsOf(run), `store ${items.length} messages`, {
    step,
    items,
  });
  markStored(inbox, items, over);
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

/** Cancels the step in flight and the calls that it has not started. At a boundary it is kept for the step that comes. */
export function interrupt(run: Run): void {
  run.state.interrupting = true;
  if (run.scope) announceStop();
  run.scope?.cancel();
}

/** Chosen: the databases that clusters keep search attributes in take 255. */
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

interface StopSinks extends Sinks {
  readonly stops: { announce(): void };
}

const { stops } = proxySinks<StopSinks>();

/**
 * Announces to the workers that activities of this session must stop. Temporal reports this too, but only at an activity's next
 * heartbeat. This is not a workflow command: it is not in the history, and if it is lost, the next heartbeat brings the stop.
 */
export function announceStop(): void {
  stops.announce();
}
