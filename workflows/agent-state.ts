/** What a run holds in memory: numbers, ids and the queue. Everything else is in Postgres. Pure. */
import type {
  CallFacts,
  CompactionFacts,
  ModelStepFacts,
  PruneFacts,
  OpenedSession,
  StepUsage,
  ToolFacts,
  UndoneFacts,
} from "../activities/contract/activities.ts";
import type { Occasion } from "../activities/contract/budget.ts";
import { repeatable } from "./stuck.ts";
import type { ContextSize } from "../activities/contract/request-size.ts";
import type { WaitingCall } from "./asking.ts";
import type { Inbox } from "./inbox.ts";
import { createInbox, latestIds } from "./inbox.ts";
import type { CarriedState, CodingAgentInput, CompactRequest } from "./messages.ts";

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
  round: number;
  /** Why the next request may have to become smaller. Until the first step, the provider may have nothing in its cache. */
  occasion: Occasion;
  /** Failed compactions in a row (invariant 9). */
  breaker: number;
  /** Rounds in a row that gained nothing: the next one was due again after one step. */
  futile: number;
  /** The step before which the newest round of this run was made; 0 if there was none. */
  roundStep: number;
  /** A compaction was made since the last step: there are never two without a step between them. */
  compacted: boolean;
  compactRequest: CompactRequest | undefined;
  /** Ids of requests to undo a compaction, oldest first. */
  undoRequests: string[];
  /** A person interrupted the step in flight. */
  interrupting: boolean;
  /** The run begins within a step: an interrupt applies to that step, also before the session is open. */
  readonly beginsInterruptible: boolean;
  recentCalls: string[];
  /** The model was warned about repeating itself, and neither a person has spoken nor has it moved on since. */
  loopWarned: boolean;
  /** The next step begins with that warning. */
  loopWarningDue: boolean;
  /** How often the current step's request did not fit. */
  overflows: number;
  /** Empty answers in a row. */
  emptyAnswers: number;
  /** Answers in a row that asked for no tool and were not finished. */
  unfinished: number;
  /** Answers since a person's last message that did not match the session's schema. */
  mismatches: number;
  /** What was wrong with the last such answer; the next step begins with it. */
  mismatch: string | undefined;
  /** What the model is told about its last answer; the next step begins with it. */
  notice: string | undefined;
  /** Answers in a row that were a call written as text. */
  writtenCalls: number;
  /** Answers in a row that the output limit cut and that had no call. */
  cuts: number;
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
  /** Calls of a step that the previous run left while it waited for people: they are done first. */
  readonly waitingCalls: readonly WaitingCall[];
  /** The worker version that the previous run left for another one. */
  readonly leftVersion: string | undefined;
  /** When the commits were last pushed, in ms; 0 if they never were. */
  pushedAtMs: number;
  /** For people: what was delivered last. */
  delivered: string | undefined;
  /** Something that a person should see in the Web UI: a malformed signal, a retry. */
  remark: string | undefined;
}

export type Phase =
  | "opening"
  | "setting up"
  | "thinking"
  | "running tools"
  | "waiting"
  | "compacting"
  | "pruning"
  | "closing"
  | "ended";

const SHOWN_CALLS = 5;

/** The fields that are carried from run to run under the same name, with their values in a session's first run. */
const FIRST = {
  step: 0,
  results: 0,
  steps: 0,
  moreSteps: 0,
  endsAtLimit: false,
  context: { used: 0, estimated: true, prunable: 0 },
  round: 0,
  breaker: 0,
  futile: 0,
  roundStep: 0,
  compacted: false,
  compactRequest: undefined,
  overflows: 0,
  emptyAnswers: 0,
  unfinished: 0,
  mismatches: 0,
  mismatch: undefined,
  notice: undefined,
  writtenCalls: 0,
  cuts: 0,
  usage: { input: 0, output: 0, cached: 0, reasoning: 0, calls: 0 },
  costUsd: 0,
  deadlineAtMs: undefined,
  fallback: undefined,
  limits: undefined,
  switched: undefined,
  waitingCalls: [],
  leftVersion: undefined,
  pushedAtMs: 0,
  delivered: undefined,
} satisfies Partial<AgentState>;

/** The fields that begin with the same values in each run. */
const EACH_RUN = {
  phase: "opening",
  epoch: 1,
  occasion: "trigger",
  deadline: undefined,
  lastCalls: [],
  sandbox: undefined,
  remark: undefined,
} satisfies Partial<AgentState>;

export function createState({ carried, guidance = [] }: CodingAgentInput): AgentState {
  const { queue, parked, seenIds, recentCalls, undoRequests, nudged, nudge, interrupting, ...same } =
    carried ?? NOTHING_CARRIED;
  return {
    ...EACH_RUN,
    ...FIRST,
    ...same,
    inbox: createInbox(queue ?? guidance, parked ?? 0, seenIds ?? guidance.map(({ id }) => id)),
    recentCalls: [...(recentCalls ?? [])],
    undoRequests: [...(undoRequests ?? [])],
    loopWarned: nudged ?? false,
    loopWarningDue: nudge ?? false,
    interrupting: interrupting ?? false,
    beginsInterruptible: interrupting !== undefined,
  };
}

const NOTHING_CARRIED: Partial<CarriedState> = {};

export function applyOpened(state: AgentState, session: OpenedSession): void {
  state.step = session.step;
  state.epoch = session.epoch;
  state.context = session.context;
  state.round = session.round;
  const isFirst = session.otherModel ? "smaller" : "trigger";
  state.occasion = session.cold ? "return" : isFirst;
  state.sandbox = session.sandbox;
  if (session.costUsd !== undefined) state.costUsd = session.costUsd;
  if (session.parked) state.inbox.parked = Math.max(1, state.inbox.parked);
}

export function applyStep(state: AgentState, facts: ModelStepFacts): void {
  state.epoch = facts.epoch;
  state.inbox.parked += facts.parked ?? 0;
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
  if (facts.kind === "limited") return;
  state.limits = undefined;
  if (facts.kind !== "empty" && facts.kind !== "unavailable") state.context = facts.context;
  if (facts.kind !== "unavailable") state.switched = undefined;
  if (facts.kind === "answered") state.costUsd = facts.costUsd ?? state.costUsd + (facts.stepCostUsd ?? 0);
  state.overflows = facts.kind === "overflow" ? state.overflows + 1 : 0;
  if (facts.kind === "empty") state.emptyAnswers += 1;
  if (facts.kind === "answered" || facts.kind === "interrupted") {
    state.step += 1;
    state.results = 0;
    state.steps += 1;
    state.compacted = false;
    state.occasion = "trigger";
  }
  // The fallback model has not answered yet.
  if (facts.kind === "answered" || (facts.kind === "unavailable" && facts.reason === "used-up"))
    state.emptyAnswers = 0;
}

/** A person has spoken: what counted against the model before counts no more. */
export function beginAnew(state: AgentState): void {
  state.recentCalls = [];
  state.mismatches = 0;
  state.writtenCalls = 0;
  state.cuts = 0;
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
  state.recentCalls.push(repeatable(call, facts));
  state.lastCalls = [...state.lastCalls, { step: state.step, call, facts }].slice(-SHOWN_CALLS);
}

export function applyCompaction(state: AgentState, facts: CompactionFacts): void {
  state.context = facts.context;
  state.compacted = true;
  if (facts.kind === "compacted") {
    const next = state.step + 1;
    const isDueAgain = state.roundStep > 0 && next - state.roundStep <= 1;
    state.futile = isDueAgain ? state.futile + 1 : Math.max(0, state.futile - 1);
    state.roundStep = next;
    if (state.futile > 0)
      state.remark = `${state.futile + 1} compactions in a row gained nothing: the request reaches the trigger again at once. They pause after a few; see the token counts of the model's provider, or use a larger window.`;
    state.round = facts.round;
    state.breaker = 0;
  }
  if (facts.kind === "failed") {
    state.breaker += 1;
    state.remark = `Compaction failed: ${facts.reason}`;
  }
}

/** The person wants the old view for a step: no compaction follows at once, unless the request does not fit. */
export function applyUndo(state: AgentState, facts: UndoneFacts): void {
  state.context = facts.context;
  if (facts.kind === "undone") state.compacted = true;
  else state.remark = facts.reason;
}

export function applyPrune(state: AgentState, facts: PruneFacts): void {
  state.context = facts.context;
}

/** What the next run of this session is given. Fields with their default values are left out. */
export function carry(state: AgentState): CarriedState {
  const { step, steps, round, breaker, context, usage, undoRequests } = state;
  const names = Object.keys(FIRST) as (keyof typeof FIRST)[];
  const changed = names.filter((name) => name !== "waitingCalls" && state[name] !== FIRST[name]);
  return {
    ...Object.fromEntries(changed.map((name) => [name, state[name]])),
    queue: state.inbox.queue,
    parked: state.inbox.parked,
    seenIds: latestIds(state.inbox),
    step,
    steps,
    round,
    breaker,
    context,
    usage,
    recentCalls: state.recentCalls.slice(-20),
    nudged: state.loopWarned,
    ...(state.loopWarningDue ? { nudge: true } : {}),
    ...(undoRequests.length > 0 ? { undoRequests } : {}),
  };
}
