/** What watchers learn of a step's request. */
import type { NewEvent } from "../store/event.ts";
import { appendEvents } from "../store/events.ts";
import type { StepContext } from "./step-context.ts";

/**
 * @param triggerTokens the size at which room is made
 * @param unsupported media types that the model does not take
 */
export function eventsOfRequest(
  { session, input, scope, size }: StepContext,
  triggerTokens: number,
  unsupported: readonly string[],
): NewEvent[] {
  const { model, contextWindow: window } = session.config;
  const at = { step: input.step, attempt: scope.attempt };
  const { tokens: estimatedInput, estimated } = size.next;
  return [
    {
      ...at,
      type: "step:started",
      data: { estimatedInput, estimated, triggerTokens, limit: triggerTokens, window },
    },
    ...unsupported.map((mediaType): NewEvent => {
      const message = `${model} does not take ${mediaType}; the model was informed in text.`;
      return { ...at, type: "llm:unsupported-input", data: { mediaType, message } };
    }),
    { ...at, type: "llm:thinking", data: { model } },
  ];
}

export async function emitEvents(
  { deps, session }: Pick<StepContext, "deps" | "session">,
  events: readonly NewEvent[],
): Promise<void> {
  await appendEvents(deps.store.db, session.id, session.epoch, events);
  deps.notifier.wake(session.id);
}
