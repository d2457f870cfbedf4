/** What a run holds in memory: numbers, ids and the queue. Everything else is in Postgres. */
import type { ToolFacts } from "../activities/contract/calls.ts";
import type {
  CallFacts,
  CompactionFacts,
  ModelStepFacts,
  ModelStepInput,
  PruneFacts,
  OpenedSession,
  StepUsage,
  UndoneFacts,
} from "../activities/contract/activities.ts";
import type { Occasion } from "../activities/contract/budget.ts";
import { repeatable } from "./stuck.ts";
import type { ContextSize } from "../activities/contract/request-size.ts";
import type { VerifiedWork } from "../activities/contract/verify.ts";
import type { LaterQuestion, WaitingCall } from "./asking.ts";
import type { Inbox } from "./inbox.ts";
import { addOlder, createInbox, latestIds } from "./inbox.ts";
import type { CompactRequest } from "./messages.ts";
import type { CarriedState, CodingAgentInput } from "./run-input.ts";

export interface AgentState {
  phase: Phase;
  readonly inbox: Inbox;
  /** Steps finished in the session. */
  step: number;
  /** How many calls of the last step have their results. */
  results: number;
  /** Steps of this task, from start or resume: what `maxSteps` counts. */
  steps: number;
  /** Steps that a person granted on top of `maxSteps`. */
  moreSteps: number;
  /** A person was asked at a limit and did not raise it, so the run must end there. */
  endsAtLimit: boolean;
  epoch: number;
  context: ContextSize;
  /** Why the next request may have to become smaller. Until the first step, the provider may have nothing in its cache. */
  occasion: Occasion;
  readonly compaction: CompactionState;
  readonly answers: AnswerCounts;
  /** The next step begins with it: what the model is told about its last answer, or that it repeats itself. */
  note: ModelStepInput["note"];
  readonly repetition: Repetition;
  /** A person interrupted the step in flight. */
  interrupting: boolean;
  usage: Readonly<StepUsage & { calls: number }>;
  /** USD of the session so far, if a limit was set. */
  costUsd: number;
  /** When the run must have ended, in ms since 1970, and whether that is near or over. */
  deadlineAtMs: number | undefined;
  deadline: "near" | "over" | undefined;
  /** The fallback model in use: its index in the list, from 1, and since when (ms). */
  fallback: { readonly index: number; readonly sinceMs: number } | undefined;
  /** Waits for the end of a limit of the model, one after the other: when the first began, how many, and until when. In ms. */
  limits: { readonly sinceMs: number; readonly count: number; readonly untilMs: number } | undefined;
  /** The next step asks another model than the last one did. */
  switched: "fallback" | "return" | undefined;
  /** For people: the last calls, newest last. */
  lastCalls: readonly {
    readonly step: number;
    readonly call: CallFacts;
    readonly facts: ToolFacts | undefined;
  }[];
  sandbox: { readonly container: string; readonly taskQueue: string | undefined } | undefined;
  /** Questions that do not block, open or with an answer that is not stored yet. */
  later: LaterQuestion[];
  /** How often this run has waited at the model's word. */
  waits: number;
  /** Commands that were started in the background, and whether the model was told at a last answer that some run. */
  commands: { readonly started: number; readonly isTold: boolean };
  /** Calls of a step that the previous run left while it waited for people: they are done first. */
  readonly waitingCalls: readonly WaitingCall[];
  /** The worker version that the previous run left for another one. */
  readonly leftVersion: string | undefined;
  /** When the commits were last pushed, in ms, 0 if they never were; for people, what was delivered last. */
  readonly delivery: { pushedAtMs: number; last: string | undefined };
  /** Messages to the model about work that did not pass `verify`, and what the newest look saw. */
  readonly verify: { round: number; last: VerifiedWork | undefined };
  /** Something that a person should see in the Web UI: a malformed signal, a retry. */
  remark: string | undefined;
}

interface CompactionState {
  /** The newest round. */
  round: number;
  /** Failed compactions in a row (invariant 9). */
  breaker: number;
  /** Rounds in a row that gained nothing: the next one was due again after one step. */
  futile: number;
  /** The step before which the newest round of this run was made; 0 if there was none. */
  lastStep: number;
  /** One was made since the last step: there are never two without a step between them. */
  isFresh: boolean;
  /** A person asks for one. */
  request: CompactRequest | undefined;
  /** Ids of requests to undo one, oldest first. */
  undoRequests: string[];
}

/** Answers and requests that did not bring the task further, each kind counted for itself. */
export interface AnswerCounts {
  /** How often the current step's request did not fit. */
  overflows: number;
  /** Empty answers in a row. */
  empty: number;
  /** Answers in a row that asked for no tool and were not finished. */
  unfinished: number;
  /** Answers since a person's last message that did not match the session's schema. */
  mismatches: number;
  /** Answers in a row that were a call written as text. */
  writtenCalls: number;
  /** Answers in a row that the output limit cut and that had no call. */
  cuts: number;
}

interface Repetition {
  /** The last calls and their results, as `repeatable` gives them. */
  calls: string[];
  /** The model was warned about repeating itself, and neither a person has spoken nor has it moved on since. */
  isWarned: boolean;
}

export type Phase =
  | "opening"
  | "setting up"
  | "thinking"
  | "running tools"
  | "waiting"
  | "verifying"
  | "compacting"
  | "pruning"
  | "closing"
  | "ended";

const SHOWN_CALLS = 5;

/** A session's first run, apart from its messages. What an earlier run hands over replaces these values. */
const first = () =>
  ({
    phase: "opening",
    step: 0,
    results: 0,
    steps: 0,
    moreSteps: 0,
    endsAtLimit: false,
    epoch: 1,
    context: { used: 0, estimated: true, prunable: 0 },
    occasion: "trigger",
    note: undefined,
    interrupting: false,
    usage: { input: 0, output: 0, cached: 0, reasoning: 0, calls: 0 },
    costUsd: 0,
    deadlineAtMs: undefined,
    deadline: undefined,
    fallback: undefined,
    limits: undefined,
    switched: undefined,
    lastCalls: [],
    sandbox: undefined,
    waits: 0,
    later: [],
    commands: { started: 0, isTold: false },
    waitingCalls: [],
    leftVersion: undefined,
    remark: undefined,
  }) satisfies Partial<AgentState>;

export function createState({ carried = {}, guidance = [] }: CodingAgentInput): AgentState {
  const { inbox, compaction, answers, repetition, delivery, verify, usage, commands, later, ...same } =
    carried;
  const initial = first();
  return {
    ...initial,
    ...same,
    usage: { ...initial.usage, ...usage },
    commands: { ...initial.commands, ...commands },
    later: [...(later ?? [])],
    inbox: createInbox(guidance, inbox?.seen ?? []),
    compaction: {
      round: 0,
      breaker: 0,
      futile: 0,
      lastStep: 0,
      isFresh: false,
      request: undefined,
      ...compaction,
      undoRequests: [...(compaction?.undoRequests ?? [])],
    },
    answers: { overflows: 0, empty: 0, unfinished: 0, mismatches: 0, writtenCalls: 0, cuts: 0, ...answers },
    repetition: { calls: [...(repetition?.calls ?? [])], isWarned: repetition?.isWarned ?? false },
    delivery: { pushedAtMs: 0, last: undefined, ...delivery },
    verify: { round: 0, last: undefined, ...verify },
  };
}

/** What the next run of this session is given, apart from the calls of a step that waits for people (`carryWaiting`). */
export function carry(state: AgentState): CarriedState {
  const { inbox, repetition } = state;
  const { step, results, steps, moreSteps, endsAtLimit, context, compaction, answers, note } = state;
  const {
    usage,
    costUsd,
    deadlineAtMs,
    fallback,
    limits,
    switched,
    leftVersion,
    delivery,
    verify,
    commands,
    waits,
    later,
  } = state;
  return {
    inbox: { seen: latestIds(inbox) },
    step,
    results,
    steps,
    moreSteps,
    endsAtLimit,
    context,
    compaction,
    answers,
    note,
    repetition: { ...repetition, calls: repetition.calls.slice(-CARRIED_CALLS) },
    usage,
    costUsd,
    deadlineAtMs,
    fallback,
    limits,
    switched,
    leftVersion,
    delivery,
    verify: verify.last === undefined ? undefined : verify,
    commands: commands.started > 0 ? commands : undefined,
    waits: waits > 0 ? waits : undefined,
    later: later.length > 0 ? later : undefined,
  };
}

/** Calls beyond what `stuckVerdict` looks at: a run continues the count. */
const CARRIED_CALLS = 20;

export function applyOpened(state: AgentState, session: OpenedSession): void {
  state.step = session.step;
  state.epoch = session.epoch;
  state.context = session.context;
  state.compaction.round = session.round;
  const isFirst = session.otherModel ? "smaller" : "trigger";
  state.occasion = session.isCacheExpired ? "return" : isFirst;
  state.sandbox = session.sandbox;
  if (session.costUsd !== undefined) state.costUsd = session.costUsd;
  addOlder(state.inbox, session.waiting ?? []);
}

export function applyStep(state: AgentState, facts: ModelStepFacts): void {
  const { answers } = state;
  state.epoch = facts.epoch;
  if (facts.isOwn) state.fallback = undefined;
  if (facts.kind === "empty" || facts.kind === "answered") {
    const { usage } = state;
    state.usage = {
      input: usage.input + facts.usage.input,
      output: usage.output + facts.usage.output,
      cached: usage.cached + facts.usage.cached,
      reasoning: usage.reasoning + facts.usage.reasoning,
      calls: usage.calls + 1,
    };
  }
  if (facts.kind === "limited" || facts.kind === "over-budget") return;
  state.limits = undefined;
  if (facts.kind !== "empty" && facts.kind !== "unavailable") state.context = facts.context;
  if (facts.kind !== "unavailable") state.switched = undefined;
  if (facts.kind === "answered") state.costUsd = facts.costUsd ?? state.costUsd + (facts.stepCostUsd ?? 0);
  answers.overflows = facts.kind === "overflow" ? answers.overflows + 1 : 0;
  if (facts.kind === "empty") answers.empty += 1;
  if (facts.kind === "answered" || facts.kind === "interrupted") {
    state.step += 1;
    state.results = 0;
    state.steps += 1;
    state.compaction.isFresh = false;
    state.occasion = "trigger";
  }
  // The fallback model has not answered yet.
  if (facts.kind === "answered" || (facts.kind === "unavailable" && facts.reason === "used-up"))
    answers.empty = 0;
}

/** A person has spoken: what counted against the model before counts no more. */
export function beginAnew(state: AgentState): void {
  state.repetition.calls = [];
  Object.assign(state.answers, { mismatches: 0, writtenCalls: 0, cuts: 0 });
  Object.assign(state.verify, { round: 0, last: undefined });
}

export function applyToolResult(state: AgentState, call: CallFacts, facts: ToolFacts): void {
  const { context } = state;
  state.results += 1;
  state.context = {
    ...context,
    // Computed as the activities do; rounded to whole tokens only for display.
    used: context.used + facts.tokens * (context.ratio ?? 1),
    prunable: context.prunable + facts.tokens,
  };
  if (facts.costUsd !== undefined) state.costUsd = facts.costUsd;
  if (facts.background === true) state.commands = { ...state.commands, started: state.commands.started + 1 };
  state.repetition.calls.push(repeatable(call, facts));
  state.lastCalls = [...state.lastCalls, { step: state.step, call, facts }].slice(-SHOWN_CALLS);
}

export function applyCompaction(state: AgentState, facts: CompactionFacts): void {
  const { compaction } = state;
  state.context = facts.context;
  compaction.isFresh = true;
  if (facts.kind === "compacted") {
    const next = state.step + 1;
    const isDueAgain = compaction.lastStep > 0 && next - compaction.lastStep <= 1;
    compaction.futile = isDueAgain ? compaction.futile + 1 : Math.max(0, compaction.futile - 1);
    compaction.lastStep = next;
    if (compaction.futile > 0)
      state.remark = `${compaction.futile + 1} compactions in a row gained nothing: the request reaches the trigger again at once. They pause after a few; see the token counts of the model's provider, or use a larger window.`;
    compaction.round = facts.round;
    compaction.breaker = 0;
  }
  if (facts.kind === "failed") {
    compaction.breaker += 1;
    state.remark = `Compaction failed: ${facts.reason}`;
  }
}

/** The person wants the old view for a step: no compaction follows at once, unless the request does not fit. */
export function applyUndo(state: AgentState, facts: UndoneFacts): void {
  state.context = facts.context;
  if (facts.kind === "undone") state.compaction.isFresh = true;
  else state.remark = facts.reason;
}

export function applyPrune(state: AgentState, facts: PruneFacts): void {
  state.context = facts.context;
}
