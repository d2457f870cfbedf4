/** The loop's decisions, made from its numbers. Pure. */
import type { CallFacts, CompactionTrigger, ModelStepFacts } from "../activities/contract/activities.ts";
import type { Limit } from "../activities/contract/limits.ts";
import type { RunPolicy } from "../activities/contract/run-policy.ts";
import type { FailureType } from "../activities/contract/failures.ts";
import { CUT_NOTE, emptyNote, wroteCallNote } from "./stuck.ts";
import { prunesFirst } from "../activities/contract/budget.ts";
import type { AgentState } from "./agent-state.ts";
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
  if (state.compactRequest) return { trigger: "manual", ...state.compactRequest };
  if (policy.autoCompaction === false) return undefined;
  if (policy.maxFutileRounds !== undefined && pauses(state, policy.maxFutileRounds)) return undefined;
  if (state.compacted || nextRequest(state, policy) < triggerTokens(state, policy)) return undefined;
  return { trigger: "threshold", ...(state.breaker >= BREAKER ? { deterministic: true } : {}) };
}

/** The trigger may be lower when a session is resumed after its provider's cache expired (decision 0034). */
function triggerTokens({ occasion }: AgentState, { budget }: RunPolicy): number {
  return occasion === "return" ? (budget.returnTokens ?? budget.triggerTokens) : budget.triggerTokens;
}

/** Tokens of the next request. Runs older than `pruneFirst` do not count messages before they are delivered. */
function nextRequest({ context, inbox }: AgentState, { budget }: RunPolicy): number {
  return budget.pruneFirst === undefined
    ? context.used
    : context.used + waitingTokens(inbox) * (context.ratio ?? 1);
}

/**
 * Whether old results are hidden before this compaction, which may not be due any more after that. Not if a person asked for it,
 * nor if a provider refused a request that fits by our count.
 */
export function pruneComesFirst(state: AgentState, policy: RunPolicy, plan: CompactionPlan): boolean {
  const { budget } = policy;
  const usedTokens = nextRequest(state, policy);
  const isOurs =
    plan.trigger === "threshold" || (plan.trigger === "overflow" && usedTokens > budget.limitTokens);
  // A fallback model's requests are measured by the session's own model here.
  if (!isOurs || state.fallback !== undefined) return false;
  const numbers = { usedTokens, prunableTokens: state.context.prunable };
  return prunesFirst(numbers, state.occasion, { budget, triggerTokens: triggerTokens(state, policy) });
}

/** Whether a compaction is not needed any more, now that old results are hidden. */
export function fitsNow(state: AgentState, policy: RunPolicy): boolean {
  return nextRequest(state, policy) < triggerTokens(state, policy);
}

/** Steps without a compaction after several that gained nothing. Source: ours, at most one compaction in ten steps. */
const PAUSE_STEPS = 20;

/**
 * If a compaction is due again after each single step, summaries do not bring the request below the trigger: the provider's
 * count contradicts ours, or what is kept outside a summary is too large. A request that does not fit, and a person who
 * asks, still get their compaction.
 */
function pauses(state: AgentState, maxFutileRounds: number): boolean {
  return state.futile >= maxFutileRounds && state.step + 1 - state.roundStep < PAUSE_STEPS;
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
  if (step.kind === "overflow" && !afterOverflow(state.overflows, policy)) {
    const what =
      policy.autoCompaction === false
        ? "and automatic compaction is off (context.options.auto or trigger). The conversation is kept: compact it first, or resume with a model that has a larger window (say ID --model)."
        : "even after a summary made without a model. The conversation is kept: resume with a model that has a larger window (say ID --model).";
    const said = step.said === undefined ? "" : ` The provider's words: ${step.said}`;
    const message = `The request does not fit the model's window, ${what}${said}`;
    return { kind: "failed", type: "ContextOverflow", message };
  }
  return step.kind === "empty" ? afterEmpty(state, step.reason) : { kind: "again" };
}

function afterEmpty({ emptyAnswers }: AgentState, reason: string | undefined): NextMove {
  if (emptyAnswers <= 1)
    return reason === undefined ? { kind: "again" } : { kind: "corrected", note: emptyNote(reason) };
  const why = reason === undefined ? "" : ` The provider says: ${reason}.`;
  const message = `The model gave an empty answer twice in a row.${why} The conversation is kept: send a message to resume.`;
  return { kind: "failed", type: "EmptyAnswer", message };
}

/** Counts answers that do not end the task although they call no tool, each kind of its own. */
export function applyMove(state: AgentState, step: ModelStepFacts, next: NextMove): void {
  if (step.kind === "answered") {
    state.unfinished = next.kind === "unfinished" ? state.unfinished + 1 : 0;
    state.cuts = step.finish === "length" && step.calls.length === 0 ? state.cuts + 1 : 0;
    state.writtenCalls = step.wroteCall === undefined ? 0 : state.writtenCalls + 1;
  }
  if (next.kind === "corrected") state.notice = next.note;
  if (next.kind !== "mismatch") return;
  state.mismatches += 1;
  state.mismatch = next.why;
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
  { needsStop, checksAnswer, countsCuts }: Pick<RunPolicy, "needsStop" | "checksAnswer" | "countsCuts">,
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
  if (answer.finish === "length") return countsCuts ? afterCut(state) : { kind: "again" };
  if (answer.wroteCall !== undefined) return afterWrittenCall(state, answer.wroteCall);
  if (answer.finish === "stop" || needsStop !== true)
    return checksAnswer && answer.mismatch !== undefined
      ? afterMismatch(state, answer.mismatch)
      : { kind: "completed" };
  return state.unfinished < 1
    ? { kind: "unfinished" }
    : {
        kind: "failed",
        type: "UnfinishedAnswer",
        message: `The model's answer broke off twice in a row (finish: ${answer.finish}), so it does not count as the end of the task. What it said is kept: send a message to resume.`,
      };
}

/** Answers cut in a row, without a call, after which the model is told, and after which the run ends: as for repeated calls. */
const MOST_CUTS = { untilNote: 4, untilEnd: 8 };

function afterCut({ cuts }: AgentState): NextMove {
  if (cuts + 1 === MOST_CUTS.untilNote) return { kind: "corrected", note: CUT_NOTE };
  if (cuts + 1 < MOST_CUTS.untilEnd) return { kind: "again" };
  const message = `The model's last ${MOST_CUTS.untilEnd} answers were all cut off by the output limit, without a call, even after a note about it. The conversation is kept: say what to do differently to resume, raise the model's maxOutput, or use another model (say ID --model).`;
  return { kind: "failed", type: "Stuck", message };
}

function afterWrittenCall({ writtenCalls }: AgentState, tool: string): NextMove {
  if (writtenCalls < 1) return { kind: "corrected", note: wroteCallNote(tool) };
  const message = `The model wrote a call of ${tool} as text, twice, so nothing was run. Usually the chat template or the tool parser of its server does not fit the model: start the server with those that belong to it, or use a model that calls tools there (say ID --model). providers.NAME.options.callsInText: true reads such texts as calls. The conversation and the files are kept.`;
  return { kind: "failed", type: "CallInText", message };
}

function afterMismatch({ mismatches }: AgentState, why: string): NextMove {
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
): Limit | undefined {
  if (state.deadline) return "deadline";
  if (state.steps >= policy.maxSteps + state.moreSteps) return "steps";
  return policy.maxCostUsd !== undefined && state.costUsd >= policy.maxCostUsd ? "cost" : undefined;
}

const WHERE_THINGS_STAND =
  "Without calling tools, say where things stand: what is done and checked, what is not, and what the next step would be.";

/** Of the wrap-up step at the limit. Source: requirement 3. */
export const WRAP_UP_TEXT: Readonly<Record<Limit, string>> = {
  steps: `The step limit is reached. ${WHERE_THINGS_STAND}`,
  deadline: `There is hardly any time left until the deadline. ${WHERE_THINGS_STAND}`,
  cost: `The limit of what this session may cost is reached. ${WHERE_THINGS_STAND}`,
};
