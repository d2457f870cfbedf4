/** What was loaded for a step, the session as the step sees it, and what watchers learn of its request. */
import type { ModelStepInput } from "../contract/activities.ts";
import type { StoredMessage } from "../contract/message.ts";
import type { Measure } from "../context/context-size.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import type { ActivityScope } from "../runtime/activity-scope.ts";
import type { Session } from "../store/sessions.ts";
import type { ViewSize } from "../transcript/size.ts";
import type { TokenRatio } from "../contract/request-size.ts";
import type { NewEvent } from "../store/event.ts";
import { appendEvents } from "../store/events.ts";
import { withFallback } from "../config/asked-model.ts";
import { loadRatio } from "../store/model-calls.ts";

export interface StepContext {
  readonly deps: AgentDeps;
  readonly scope: ActivityScope;
  readonly session: Session;
  readonly input: ModelStepInput;
  readonly rows: readonly StoredMessage[];
  readonly size: ViewSize;
  readonly measure: Measure;
  readonly tokenRatio: TokenRatio | undefined;
}

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
}

/** @param fallback index in the list of fallback models, from 1; undefined: the session's own model */
export async function withAskedModel(
  { store }: Pick<AgentDeps, "store">,
  session: Session,
  fallback: number | undefined,
): Promise<Session> {
  const config = withFallback(session.config, fallback);
  if (config === session.config) return session;
  return { ...session, config, tokenRatio: await loadRatio(store.db, config.model) };
}
