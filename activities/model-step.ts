/**
 * One model step: drain guidance, build the request, ask, store the answer, return facts.
 *
 * Idempotency key: (session, live epoch, step): a stored answer is found before anything is sent, so a crash after the
 * write costs no second call. Side effects: messages, ledger rows, a bill, events. Heartbeat: by timer. Retry class:
 * providers' 408/409/429/5xx, silence and network are retried after what they ask for; refusals are final.
 * Cancel: the request is aborted, what was said is kept with ` [interrupted]`, and `interrupted` is returned.
 */
import { inScope, type ActivityScope } from "./activity-scope.ts";
import { answerTokens, type Budget } from "./context/budget.ts";
import { measureOf, sizeFacts } from "./context-size.ts";
import type { ModelStepFacts, ModelStepInput, StepOutcome } from "./contract.ts";
import { deliverGuidance } from "./deliver-guidance.ts";
import type { AgentDeps } from "./deps.ts";
import { enterSession } from "./enter-session.ts";
import { budgetOf } from "./run-policy.ts";
import { answerFacts, keepInterrupted, storeAnswer } from "./model/store-answer.ts";
import { createChunkWriter } from "./model/chunk-writer.ts";
import { ModelError, type ModelAnswer } from "./model/model.ts";
import { failureOf } from "./model/model-failure.ts";
import { buildMessages, prefixMaker, prefixShares, type Prefix } from "./model/request.ts";
import { viewSize, type ViewSize } from "./context/size.ts";
import type { Session } from "./store/sessions.ts";
import { appendEvents } from "./store/events.ts";
import { recordCall } from "./store/model-calls.ts";
import { loadView } from "./store/load-view.ts";
import { systemPrompt } from "./system-prompt.ts";

export function createModelStep(deps: AgentDeps) {
  const prefixFor = prefixMaker(deps.tools);
  return (input: ModelStepInput): Promise<ModelStepFacts> =>
    inScope(deps, (scope) => modelStep(deps, scope, input, prefixFor));
}

async function modelStep(
  deps: AgentDeps,
  scope: ActivityScope,
  input: ModelStepInput,
  prefixFor: (system: string) => Prefix,
): Promise<ModelStepFacts> {
  const session = await enterSession(deps.store, scope, {
    step: input.step,
    phase: "model",
    ...(input.round === undefined ? {} : { round: input.round }),
  });
  const prefix = prefixFor(systemPrompt(session.instructions));
  const budget = budgetOf(session.config, prefix.tokens);
  // What compaction keeps word for word of a person's messages is what one step takes of them.
  const parked = await deliverGuidance(deps, session, input, budget.userTokens);
  const outcome = await takeStep(deps, scope, { session, input, prefix, budget });
  const { model } = session.config;
  const isSwitched = input.model !== undefined && input.model !== model;
  return {
    ...outcome,
    ...(parked > 0 ? { parked } : {}),
    ...(isSwitched ? { policy: { model, budget, prefix: prefixShares(prefix, session.learnt?.ratio) } } : {}),
  };
}

async function takeStep(
  deps: AgentDeps,
  scope: ActivityScope,
  {
    session,
    input,
    prefix,
    budget,
  }: {
    readonly session: Session;
    readonly input: ModelStepInput;
    readonly prefix: Prefix;
    readonly budget: Budget;
  },
): Promise<StepOutcome> {
  const { db } = deps.store;
  const rows = await loadView(db, session.id);
  const { learnt } = session;
  const measure = measureOf(session, prefix);
  const step = { deps, scope, session, input, size: viewSize({ rows, ...measure }), measure, rows, learnt };

  const paid = rows.find((row) => row.step === input.step && row.slot === "assistant");
  if (paid) return answerFacts(step, paid);
  const context = sizeFacts(step.size);
  if (context.used > budget.limitTokens)
    return { kind: "overflow", by: "estimate", context, epoch: session.epoch };

  const built = await buildMessages(db, rows, session.config.input, session.config.model);
  // Beside the request, not before it.
  const announced = announce(
    deps,
    session,
    input.step,
    scope.attempt,
    step.size,
    budget.triggerTokens,
    built.unsupported,
  );
  announced.catch(() => undefined);
  const at = { sessionId: session.id, epoch: session.epoch, step: input.step, attempt: scope.attempt };
  const chunks = createChunkWriter(deps, at);
  let said = "";
  let answer: ModelAnswer;
  try {
    const { limits } = session.config;
    answer = await deps.model.ask(
      {
        model: session.config.model,
        api: session.config.api,
        system: prefix.system,
        messages: built.messages,
        tools: input.wrapUp ? [] : prefix.tools,
        maxOutputTokens: answerTokens(budget, session.config.maxOutput, context.used),
        cacheKey: session.id,
        deadlines: {
          connectMs: limits.connectTimeout,
          firstTokenMs: limits.firstTokenTimeout,
          silenceMs: limits.silenceTimeout,
        },
      },
      (delta) => {
        if (delta.type === "text") said += delta.text;
        if (delta.type === "tool-call") scope.note(`asks for ${deps.border.clean(delta.toolName)}`);
        chunks.push(delta);
      },
      scope.signal,
    );
  } catch (error) {
    await chunks.end();
    if (scope.signal.aborted) {
      if (!scope.stoppedByPerson()) return scope.stopped();
      return { kind: "interrupted", context: await keepInterrupted(step, said), epoch: session.epoch };
    }
    if (!(error instanceof ModelError)) throw error;
    await wasted(step, error.message, undefined);
    if (error.class === "overflow")
      return { kind: "overflow", by: "provider", context, epoch: session.epoch };
    const failure = failureOf(error, scope.attempt);
    const data = {
      class: error.class,
      message: failure.message,
      retryInMs: failure.retryInMs,
      final: failure.final,
    };
    await emit(deps, session, [{ type: "llm:error", step: input.step, attempt: scope.attempt, data }]);
    throw failure.failure;
  }
  await Promise.all([announced, chunks.end()]);
  if (answer.content.every((part) => part.type === "reasoning")) {
    await wasted(step, "The answer was empty.", answer);
    return {
      kind: "empty",
      usage: answer.usage ?? { input: 0, output: 0, cached: 0, reasoning: 0 },
      epoch: session.epoch,
    };
  }
  return storeAnswer(step, answer);
}

type Step = Parameters<typeof storeAnswer>[0];

/** A request that was, or may have been, billed for nothing. */
async function wasted(
  { deps, session, scope, input, size }: Step,
  error: string,
  answer: ModelAnswer | undefined,
): Promise<void> {
  await recordCall(deps.store.db, {
    sessionId: session.id,
    epoch: session.epoch,
    step: input.step,
    attempt: scope.attempt,
    purpose: "step",
    model: session.config.model,
    status: "wasted",
    error: deps.border.clean(error).slice(0, 1_000),
    estimatedInput: size.next.tokens,
    estimatePure: size.next.estimated,
    usage: answer?.usage,
  });
}

async function announce(
  deps: AgentDeps,
  session: Session,
  step: number,
  attempt: number,
  size: ViewSize,
  limit: number,
  unsupported: readonly string[],
): Promise<void> {
  await emit(deps, session, [
    {
      type: "step:started",
      step,
      attempt,
      data: { estimatedInput: size.next.tokens, estimated: size.next.estimated, limit },
    },
    ...unsupported.map((mediaType) => ({
      type: "llm:unsupported-input" as const,
      step,
      attempt,
      data: {
        mediaType,
        message: `${session.config.model} does not take ${mediaType}; it was told so in words.`,
      },
    })),
    { type: "llm:thinking", step, attempt, data: { model: session.config.model } },
  ]);
}

async function emit(
  deps: AgentDeps,
  session: Session,
  list: Parameters<typeof appendEvents>[3],
): Promise<void> {
  await appendEvents(deps.store.db, session.id, session.epoch, list);
  deps.notifier.wake(session.id);
}
