/** Decisions of the loop, by the numbers it holds. Pure. */
import type { CompactionTrigger, ModelStepFacts, RunPolicy } from "../activities/contract/activities.ts";
import type { AgentState } from "./agent-state.ts";
import { waiting } from "./inbox.ts";

/** Failed rounds in a row after which only the one without a model is tried. Source: requirement 2.9. */
const BREAKER = 3;

export interface CompactionPlan {
  readonly trigger: CompactionTrigger;
  readonly focus?: string;
  readonly deterministic?: boolean;
}

/**
 * Whether a round is due before the next step: asked for, or the full request has reached the trigger, which may be lower
 * where a session is taken up again and nothing of it is cached any more (decision 0034).
 */
export function compactionDue(state: AgentState, policy: RunPolicy): CompactionPlan | undefined {
  if (state.compactRequest) return { trigger: "manual", ...state.compactRequest };
  if (policy.autoCompaction === false) return undefined;
  const { triggerTokens, returnTokens = triggerTokens } = policy.budget;
  if (policy.maxFutileRounds !== undefined && pauses(state, policy.maxFutileRounds)) return undefined;
  if (state.compacted || state.context.used < (state.cold ? returnTokens : triggerTokens)) return undefined;
  return { trigger: "threshold", ...(state.breaker >= BREAKER ? { deterministic: true } : {}) };
}

/** Steps without a round after rounds that gained nothing; then they are tried again. Source: ours: a round in ten steps at most. */
const PAUSE_STEPS = 20;

/**
 * Where a round is due again one step after another, time after time, summaries do not bring the request below the trigger:
 * the provider's count contradicts ours, or what is kept outside a summary is too large. A request that does not fit, and a
 * person who asks for it, still get their round.
 */
function pauses(state: AgentState, maxFutileRounds: number): boolean {
  return state.futile >= maxFutileRounds && state.step + 1 - state.roundStep < PAUSE_STEPS;
}

/** What follows the nth overflow of one step: a round, a stronger one, the end. */
export function afterOverflow(overflows: number, policy: RunPolicy): CompactionPlan | undefined {
  if (policy.autoCompaction === false) return undefined;
  if (overflows === 1) return { trigger: "overflow" };
  return overflows === 2 ? { trigger: "overflow", deterministic: true } : undefined;
}

export type AfterAnswer =
  | { readonly kind: "run tools" }
  | { readonly kind: "again" }
  | { readonly kind: "completed" }
  /** Broken off for another reason than its length, without a call: it gets one more try. */
  | { readonly kind: "unfinished" }
  | { readonly kind: "failed"; readonly type: string; readonly message: string };

/**
 * What an answer means. Calls mean that the loop goes on, whatever the provider calls its finish; without calls only
 * `stop` ends the task.
 */
export function afterAnswer(
  state: AgentState,
  answer: Extract<ModelStepFacts, { kind: "answered" }>,
  { needsStop }: Pick<RunPolicy, "needsStop">,
): AfterAnswer {
  if (answer.calls.length > 0) return { kind: "run tools" };
  if (answer.finish === "content-filter") {
    return {
      kind: "failed",
      type: "ContentFilter",
      message:
        "The provider's filter ended the answer; what it said is kept. Say it in other words to go on.",
    };
  }
  // Cut off by its length without a call: it has more to say.
  if (answer.finish === "length" || waiting(state.inbox) > 0) return { kind: "again" };
  if (answer.finish === "stop" || needsStop !== true) return { kind: "completed" };
  return state.unfinished < 1
    ? { kind: "unfinished" }
    : {
        kind: "failed",
        type: "UnfinishedAnswer",
        message: `The model's answer broke off twice in a row (finish: ${answer.finish}), so it does not count as the end of the task. What it said is kept: say something to resume.`,
      };
}

/** A new run of the same session is due: only at a boundary. */
export function continueDue(
  history: { readonly suggested: boolean; readonly events: number },
  policy: RunPolicy,
): boolean {
  return history.suggested || history.events >= policy.maxHistoryEvents;
}

/** Of the wrap-up step at the limit. Source: requirement 3. */
export const WRAP_UP_TEXT =
  "The step limit is reached. Without calling tools, say where things stand: what is done and checked, what is not, and what the next step would be.";
