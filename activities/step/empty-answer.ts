/** What follows an answer with neither text nor a tool call. */
import { type Budget } from "../contract/budget.ts";
import { answerTokens } from "../config/budget.ts";
import type { StepOutcome } from "../contract/activities.ts";
import { sizeFacts } from "../context/context-size.ts";
import type { ModelTarget } from "../config/model-target.ts";
import type { ModelAnswer } from "../model/model.ts";
import { appendEvents } from "../store/events.ts";
import { outOfRoom } from "./model-failure.ts";
import type { StepContext } from "./step-context.ts";
import { recordWasted } from "./wasted-call.ts";

/** How much room an answer was given, in tokens. */
export interface Room {
  readonly tokens: number;
  /** More room than at first, because thinking used up the previous answer. */
  readonly isMore: boolean;
}

type Limits = Pick<ModelTarget, "maxOutput" | "moreOutput">;

/** @param isMore whether thinking used up the previous answer */
export function roomFor(limits: Limits, budget: Budget, usedTokens: number, isMore: boolean): Room {
  const most = isMore ? largest(limits) : limits.maxOutput;
  return { tokens: answerTokens(budget, most, usedTokens), isMore };
}

/**
 * What follows an answer whose output tokens were used up by thinking: once, the same step with more room, or after a compaction if
 * the conversation leaves no room; then the end. With the same room, the model would use it up by thinking again. Pure.
 */
export function afterUsedUp(
  room: Room,
  limits: Limits,
  budget: Budget,
  usedTokens: number,
): "again" | "compact" | "end" {
  if (room.isMore) return "end";
  if (roomFor(limits, budget, usedTokens, true).tokens > room.tokens) return "again";
  return room.tokens < largest(limits) ? "compact" : "end";
}

function largest({ maxOutput, moreOutput = maxOutput }: Limits): number {
  return Math.max(maxOutput, moreOutput);
}

/** @throws EmptyAnswer (fatal) if thinking used up all that the model can write, and no other model steps in */
export async function emptyAnswer(
  step: StepContext,
  { answer, room, budget }: { readonly answer: ModelAnswer; readonly room: Room; readonly budget: Budget },
): Promise<StepOutcome> {
  const { deps, session, input, scope, size } = step;
  const { config, epoch } = session;
  const usage = answer.usage ?? { input: 0, output: 0, cached: 0, reasoning: 0 };
  if (answer.finish !== "length") {
    const why = answer.reason === undefined ? undefined : deps.sanitizer.clean(answer.reason);
    const said = why === undefined ? "The answer was empty." : `The answer was empty: ${why}`;
    await recordWasted(step, said, { answer, finish: answer.finish });
    return { kind: "empty", usage, ...(why === undefined ? {} : { reason: why }), epoch };
  }
  const used = size.next;
  const next = afterUsedUp(room, config, budget, used.tokens);
  const failure = outOfRoom(config.model, room.tokens);
  const said = `${config.model} used up its ${room.tokens} tokens of output by thinking and said nothing.`;
  const more = roomFor(config, budget, used.tokens, true).tokens;
  const message = {
    again: `${said} It is asked once more, with ${more}.`,
    compact: `${said} The conversation is compacted to make room for more.`,
    end: failure.message,
  }[next];
  await recordWasted(step, said, { answer, finish: answer.finish });
  const data = { class: "used-up", message, retryInMs: null, final: next === "end" };
  const event = { type: "llm:error", step: input.step, attempt: scope.attempt, data } as const;
  await appendEvents(deps.store.db, session.id, epoch, [event]);
  deps.notifier.wake(session.id);
  if (next === "again") return { kind: "empty", usage, epoch };
  if (next === "compact") return { kind: "overflow", by: "provider", context: sizeFacts(size), epoch };
  if (input.hasFallback === true) return { kind: "unavailable", reason: "used-up", epoch };
  throw failure;
}
