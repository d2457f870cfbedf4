/** The loop's decisions, made from its numbers. */
import { prunesFirst } from "../activities/contract/budget.ts";
import { CUT_NOTE, emptyNote, mismatchNote, wroteCallNote } from "./stuck.ts";
import type {
  CallFacts,
  CompactionTrigger,
  ModelStepFacts,
  ModelStepInput,
} from "../activities/contract/activities.ts";
import type { OwnLimit } from "../activities/contract/limits.ts";
import type { RunPolicy } from "../activities/contract/run-policy.ts";
import type { FailureType } from "../activities/contract/failures.ts";
import type { AgentState, AnswerCounts } from "./agent-state.ts";
import { waiting, waitingTokens } from "./inbox.ts";

/** After this many failed compactions in a row, only the compaction without a model is tried. Source: requirement 2.9. */
const BREAKER = 3;

export interface CompactionPlan {
  readonly trigger: CompactionTrigger;
  readonly focus?: string;
  readonly deterministic?: boolean;
}

/**
 * Whether a compaction is due before the next step: a person asked for it, or the full request has reached the trigger, with the
 * messages that it will deliver.
 */
export function compactionDue(state: AgentState, policy: RunPolicy): CompactionPlan | undefined {
  const { compaction } = state;
  if (compaction.request) return { trigger: "manual", ...compaction.request };
  if (policy.autoCompaction === false) return undefined;
  if (pauses(state, policy.maxFutileRounds)) return undefined;
  if (compaction.isFresh || nextRequest(state) < triggerTokens(state, policy)) return undefined;
  return { trigger: "threshold", deterministic: compaction.breaker >= BREAKER ? true : undefined };
}

/** The trigger may be lower when a session is resumed after its provider's cache expired (decision 0034). */
function triggerTokens({ occasion }: AgentState, { budget }: RunPolicy): number {
  return occasion === "return" ? (budget.returnTokens ?? budget.triggerTokens) : budget.triggerTokens;
}

/** Tokens of the next request, with the messages that it will deliver. */
function nextRequest({ context, inbox }: AgentState): number {
  return context.used + waitingTokens(inbox) * (context.ratio ?? 1);
}

/**
 * Whether old results are hidden before this compaction, which may not be due any more after that. Not if a person asked for it,
 * nor if a provider refused a request that fits by our count.
 */
export function pruneComesFirst(state: AgentState, policy: RunPolicy, plan: CompactionPlan): boolean {
  const { budget } = policy;
  const usedTokens = nextRequest(state);
  const isOurs =
    plan.trigger === "threshold" || (plan.trigger === "overflow" && usedTokens > budget.limitTokens);
  // A fallback model's requests are measured by the session's own model here.
  if (!isOurs || state.fallback !== undefined) return false;
  const numbers = { usedTokens, prunableTokens: state.context.prunable };
  return prunesFirst(numbers, state.occasion, { budget, triggerTokens: triggerTokens(state, policy) });
}

/** Whether a compaction is not needed any more, now that old results are hidden. */
export function fitsNow(state: AgentState, policy: RunPolicy): boolean {
  return nextRequest(state) < triggerTokens(state, policy);
}

/** Steps without a compaction after several that gained nothing. Chosen: at most one compaction in ten steps. */
const PAUSE_STEPS = 20;

/**
 * If a compaction is due again after each single step, summaries do not bring the request below the trigger: the provider's
 * count contradicts ours, or what is kept outside a summary is too large. A request that does not fit, and a person who
 * asks, still get their compaction.
 */
function pauses({ step, compaction }: AgentState, maxFutileRounds: number): boolean {
  return compaction.futile >= maxFutileRounds && step + 1 - compaction.lastStep < PAUSE_STEPS;
}

/** What follows the nth overflow of one step: a compaction, a stronger one, or undefined for the end of the run. */
export function afterOverflow(overflows: number, policy: RunPolicy): CompactionPlan | undefined {
  if (policy.autoCompaction === false) return undefined;
  if (overflows === 1) return { trigger: "overflow" };
  return overflows === 2 ? { trigger: "overflow", deterministic: true } : undefined;
}

export type NextMove =
  | { readonly kind: "run tools"; readonly calls: readonly CallFacts[] }
  | { readonly kind: "again" }
  | { readonly kind: "completed" }
  /** The answer broke off for another reason than its length, without a call: it gets one more try. */
  | { readonly kind: "unfinished" }
  /** The last answer does not match the session's schema: it gets one more try. */
  | { readonly kind: "mismatch"; readonly why: string }
  /** The last answer is no end of the task, and the model is told why. */
  | { readonly kind: "corrected"; readonly note: string }
  | { readonly kind: "failed"; readonly type: FailureType; readonly message: string };

/** What follows a step, once `applyStep` has counted it. */
export function afterStep(state: AgentState, step: ModelStepFacts, policy: RunPolicy): NextMove {
  if (step.kind === "answered") return afterAnswer(state, step, policy);
  if (step.kind === "overflow" && !afterOverflow(state.answers.overflows, policy)) {
    const reason =
      policy.autoCompaction === false
        ? "and automatic compaction is off (context.options.auto or trigger). The conversation is kept: compact it first, or resume with a model that has a larger window (say ID --model)."
        : "even after a summary made without a model. The conversation is kept: resume with a model that has a larger window (say ID --model).";
    const quote = step.said === undefined ? "" : ` The provider's words: ${step.said}`;
    const message = `The request does not fit the model's window, ${reason}${quote}`;
    return { kind: "failed", type: "ContextOverflow", message };
  }
  return step.kind === "empty" ? afterEmpty(state.answers, step.reason) : { kind: "again" };
}

function afterEmpty({ empty }: AnswerCounts, reason: string | undefined): NextMove {
  if (empty <= 1)
    return reason === undefined ? { kind: "again" } : { kind: "corrected", note: emptyNote(reason) };
  const why = reason === undefined ? "" : ` The provider says: ${reason}.`;
  const message = `The model gave an empty answer twice in a row.${why} The conversation is kept: send a message to resume.`;
  return { kind: "failed", type: "EmptyAnswer", message };
}

/** Counts answers that do not end the task although they call no tool, each kind of its own. */
export function applyMove(state: AgentState, step: ModelStepFacts, next: NextMove): void {
  const { answers } = state;
  if (step.kind === "answered") {
    answers.unfinished = next.kind === "unfinished" ? answers.unfinished + 1 : 0;
    answers.cuts = step.finish === "length" && step.calls.length === 0 ? answers.cuts + 1 : 0;
    answers.writtenCalls = step.wroteCall === undefined ? 0 : answers.writtenCalls + 1;
  }
  if (next.kind === "corrected") state.note = { kind: "notice", text: next.note };
  if (next.kind !== "mismatch") return;
  answers.mismatches += 1;
  state.note = { kind: "notice", text: mismatchNote(next.why) };
}

/** Splits a step's calls, with their indexes, into groups: groups run one after another, the calls of a group in parallel. */
export function callGroups(calls: readonly CallFacts[]): (readonly [CallFacts, number])[][] {
  const groups: (readonly [CallFacts, number])[][] = [];
  for (const [index, call] of calls.entries()) {
    const before = groups.at(-1);
    const joins = call.alone !== true && before?.every(([other]) => other.alone !== true);
    if (joins) before?.push([call, index]);
    else groups.push([[call, index]]);
  }
  return groups;
}

/**
 * What an answer means. With calls the loop continues, whatever finish reason the provider gives; without calls only `stop`
 * ends the task.
 */
export function afterAnswer(
  state: AgentState,
  answer: Extract<ModelStepFacts, { kind: "answered" }>,
  { checksAnswer }: Pick<RunPolicy, "checksAnswer">,
): NextMove {
  if (answer.calls.length > 0) return { kind: "run tools", calls: answer.calls };
  if (answer.finish === "content-filter") {
    return {
      kind: "failed",
      type: "ContentFilter",
      message:
        "The provider's content filter ended the answer. What it said is kept: rephrase your request to continue.",
    };
  }
  if (waiting(state.inbox) > 0) return { kind: "again" };
  // The answer was cut off by its length and has no call, so the model continues it.
  if (answer.finish === "length") return afterCut(state.answers);
  if (answer.wroteCall !== undefined) return afterWrittenCall(state.answers, answer.wroteCall);
  if (answer.finish === "stop")
    return checksAnswer && answer.mismatch !== undefined
      ? afterMismatch(state.answers, answer.mismatch)
      : { kind: "completed" };
  return state.answers.unfinished < 1
    ? { kind: "unfinished" }
    : {
        kind: "failed",
        type: "UnfinishedAnswer",
        message: `The model's answer broke off twice in a row (finish: ${answer.finish}), so it does not count as the end of the task. What it said is kept: send a message to resume.`,
      };
}

/** Answers cut in a row, without a call, after which the model is told, and after which the run ends: as for repeated calls. */
const MOST_CUTS = { untilNote: 4, untilEnd: 8 };

function afterCut({ cuts }: AnswerCounts): NextMove {
  if (cuts + 1 === MOST_CUTS.untilNote) return { kind: "corrected", note: CUT_NOTE };
  if (cuts + 1 < MOST_CUTS.untilEnd) return { kind: "again" };
  const message = `The model's last ${MOST_CUTS.untilEnd} answers were all cut off by the output limit, without a call, even after a note about it. The conversation is kept: say what to do differently to resume, raise the model's maxOutput, or use another model (say ID --model).`;
  return { kind: "failed", type: "Stuck", message };
}

function afterWrittenCall({ writtenCalls }: AnswerCounts, tool: string): NextMove {
  if (writtenCalls < 1) return { kind: "corrected", note: wroteCallNote(tool) };
  const message = `The model wrote a call of ${tool} as text, twice, so nothing was run. Usually the chat template or the tool parser of its server does not fit the model: start the server with those that belong to it, or use a model that calls tools there (say ID --model). providers.NAME.options.callsInText: true reads such texts as calls. The conversation and the files are kept.`;
  return { kind: "failed", type: "CallInText", message };
}

function afterMismatch({ mismatches }: AnswerCounts, why: string): NextMove {
  if (mismatches < 1) return { kind: "mismatch", why };
  return {
    kind: "failed",
    type: "OutputMismatch",
    message: `The answer is not JSON by the schema that was asked for (--output-schema), twice: ${why}. The conversation and the files are kept: say what to do differently to resume.`,
  };
}

/** A new run of the same session is due: only at a boundary. */
export function continueDue(
  history: { readonly suggested: boolean; readonly events: number },
  policy: RunPolicy,
): boolean {
  return history.suggested || history.events >= policy.maxHistoryEvents;
}

/** The limit that a run has reached: the next step is its last. */
export function limitReached(
  state: Pick<AgentState, "steps" | "moreSteps" | "costUsd" | "deadline">,
  policy: RunPolicy,
): OwnLimit | undefined {
  if (state.deadline) return "deadline";
  if (state.steps >= policy.maxSteps + state.moreSteps) return "steps";
  return policy.maxCostUsd !== undefined && state.costUsd >= policy.maxCostUsd ? "cost" : undefined;
}

const WHERE_THINGS_STAND =
  "Without calling tools, say where things stand: what is done and checked, what is not, and what the next step would be.";

/** Of the wrap-up step at the limit. Source: requirement 3. */
export const WRAP_UP_TEXT: Readonly<Record<OwnLimit, string>> = {
  steps: `The step limit is reached. ${WHERE_THINGS_STAND}`,
  deadline: `There is hardly any time left until the deadline. ${WHERE_THINGS_STAND}`,
  cost: `The limit of what this session may cost is reached. ${WHERE_THINGS_STAND}`,
};

type Asked = Pick<ModelStepInput, "fallback" | "hasFallback" | "switched">;

/** The fields of a step's input that say which model is asked; none if it is the session's own. */
export function askedModel(
  state: Pick<AgentState, "fallback" | "switched">,
  policy: RunPolicy | undefined,
): Asked {
  const index = state.fallback?.index ?? 0;
  return {
    fallback: index > 0 ? index : undefined,
    hasFallback: index < (policy?.fallbacks?.count ?? 0) ? true : undefined,
    switched: state.switched,
  };
}

/** The asked model's provider failed: the next one of the list. */
export function stepIn(state: Pick<AgentState, "fallback" | "switched">, nowMs: number): void {
  state.fallback = { index: (state.fallback?.index ?? 0) + 1, sinceMs: nowMs };
  state.switched = "fallback";
}

/** After a while the session's own model is asked again: its outage may be over. */
export function returnIfDue(
  state: Pick<AgentState, "fallback" | "switched">,
  policy: Pick<RunPolicy, "fallbacks">,
  nowMs: number,
): void {
  if (state.fallback === undefined || policy.fallbacks === undefined) return;
  if (nowMs - state.fallback.sinceMs < policy.fallbacks.returnAfterMs) return;
  state.fallback = undefined;
  state.switched = "return";
}
