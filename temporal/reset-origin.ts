/**
 * Where a run that a reset made comes from, and how far its line had come: read from its history, whose first part is a copy. Not
 * from the activity that writes first: that one may run beside others, and its input is as old as its event.
 */
import { defaultPayloadConverter, type Payload } from "@temporalio/common";
import type { History } from "@temporalio/common/lib/proto-utils.js";
import type {
  CloseSandboxInput,
  CompactionFacts,
  ModelStepFacts,
  OpenedSession,
} from "../activities/contract/activities.ts";
import type { SettledQuestion } from "../activities/contract/questions.ts";
import type { HistoryPlace, RunOrigin } from "../activities/contract/session-runs.ts";
import type { ToolFacts } from "../activities/contract/calls.ts";

type Event = NonNullable<History["events"]>[number];

/** @param history with decoded payloads. @returns undefined if neither a reset nor a run before it made the run */
export function originOf({ events }: History): RunOrigin | undefined {
  const list = events ?? [];
  const resets = list.flatMap((event, index) => {
    const { baseRunId, newRunId } = event.workflowTaskFailedEventAttributes ?? {};
    return baseRunId && newRunId ? [{ index, baseRunId, newRunId }] : [];
  });
  const last = resets.at(-1);
  if (last === undefined) {
    const continues = list[0]?.workflowExecutionStartedEventAttributes?.continuedExecutionRunId;
    return continues ? { continues } : undefined;
  }
  return {
    runId: last.baseRunId,
    forks: new Map(resets.slice(0, -1).map(({ newRunId, baseRunId }) => [newRunId, baseRunId])),
    place: placeAfter(list.slice(0, last.index)),
  };
}

interface Scheduled {
  readonly name: string;
  readonly input: Partial<ActivityInput>;
}

interface ActivityInput {
  readonly step: number;
  readonly index: number;
  readonly id: string;
  readonly requestId: string;
}

/** A place that is still being found; `calls` are the step's calls without a result, undefined before its tools. */
type Finding = {
  -readonly [Key in Exclude<keyof HistoryPlace, "open" | "phase" | "settled" | "undone">]: HistoryPlace[Key];
} & { calls: Set<number> | undefined; settled: string[]; undone: string[] };

/** How far a run had come by the end of these events, with decoded payloads. */
export function placeAfter(events: readonly Event[]): HistoryPlace {
  const progress: Finding = {
    step: undefined,
    calls: undefined,
    settled: [],
    undone: [],
    round: undefined,
    pruned: undefined,
  };
  const carried = carriedBy(events[0]);
  const scheduled = new Map<string, Scheduled>();
  for (const event of events) {
    const scheduling = event.activityTaskScheduledEventAttributes;
    if (scheduling) {
      const input = valueOf(scheduling.input?.payloads?.[0]) as Scheduled["input"] | undefined;
      const activity = { name: scheduling.activityType?.name ?? "", input: input ?? {} };
      scheduled.set(String(event.eventId), activity);
      applyScheduled(progress, activity);
    }
    const completion = event.activityTaskCompletedEventAttributes;
    const activity = scheduled.get(String(completion?.scheduledEventId));
    if (completion && activity)
      applyCompleted(progress, activity, {
        result: valueOf(completion.result?.payloads?.[0]) ?? {},
        carried,
      });
  }
  const { calls, ...rest } = progress;
  return calls === undefined || (calls.size === 0 && rest.step !== undefined)
    ? { ...rest, step: calls === undefined ? rest.step : (rest.step ?? 0) + 1, phase: "model", settled: [] }
    : { ...rest, phase: "tools", open: [...calls] };
}

/** A run that asks for the next step, or closes, has nothing more to do in the step before. */
function applyScheduled(progress: Finding, { name, input }: Scheduled): void {
  const { step } = input;
  if (step === undefined || progress.step === undefined) return;
  if (["modelStep", "summarize", "undoCompaction"].includes(name)) toModel(progress, step);
  const isAfterTools = ["prune", "closeSandbox", "closeSession"].includes(name);
  if (isAfterTools && (input as Partial<CloseSandboxInput>).neverOpened === undefined)
    toModel(progress, step + 1);
}

function toModel(progress: Finding, step: number): void {
  progress.step = step;
  progress.calls = undefined;
  progress.settled = [];
}

interface Completed {
  readonly result: unknown;
  readonly carried: Carried;
}

function applyCompleted(progress: Finding, { name, input }: Scheduled, { result, carried }: Completed): void {
  const { step, index } = input;
  switch (name) {
    case "openSession": {
      const opened = result as OpenedSession;
      toModel(progress, opened.step + 1);
      progress.round = opened.round;
      if (carried.waitingCalls) {
        progress.step = opened.step;
        progress.calls = new Set(carried.waitingCalls.map((waiting) => waiting.index));
      }
      return;
    }
    case "modelStep": {
      const answer = result as ModelStepFacts;
      if (step === undefined || (answer.kind !== "answered" && answer.kind !== "interrupted")) return;
      toModel(progress, step + 1);
      if (answer.kind !== "answered" || answer.calls.length === 0) return;
      progress.step = step;
      progress.calls = new Set(answer.calls.keys());
      return;
    }
    case "summarize": {
      const facts = result as CompactionFacts;
      if (facts.kind === "compacted") progress.round = facts.round;
      if (facts.kind === "pruned") progress.pruned = step;
      return;
    }
    case "prune":
      progress.pruned = step;
      return;
    case "undoCompaction":
      if (input.requestId !== undefined) progress.undone.push(input.requestId);
      return;
    case "settleQuestion":
      if (step !== progress.step) return;
      if (input.id !== undefined) progress.settled.push(input.id);
      if ((result as SettledQuestion).kind === "result" && index !== undefined) progress.calls?.delete(index);
      return;
    case "openDelegate":
    case "settleDelegate":
      if ((result as { kind: string }).kind === "settled" && step === progress.step && index !== undefined)
        progress.calls?.delete(index);
      return;
    case "runTool": {
      const facts = result as ToolFacts;
      const isOver = facts.serverAsks === undefined && facts.needsApproval !== true;
      if (isOver && step === progress.step && index !== undefined) progress.calls?.delete(index);
    }
  }
}

interface Carried {
  readonly waitingCalls?: readonly { readonly index: number }[];
}

function carriedBy(event: Event | undefined): Carried {
  const input = valueOf(event?.workflowExecutionStartedEventAttributes?.input?.payloads?.[0]);
  return (input as { carried?: Carried } | undefined)?.carried ?? {};
}

function valueOf(payload: Payload | null | undefined): unknown {
  return payload ? defaultPayloadConverter.fromPayload(payload) : undefined;
}
