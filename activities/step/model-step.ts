/**
 * One model step: drain guidance, build the request, ask, store the answer, return facts.
 *
 * Idempotency key: (session, live epoch, step): a stored answer is found before anything is sent, so a crash after the
 * write costs no second call. Side effects: messages, ledger rows, a bill, events. Heartbeat: by timer. Retry class:
 * providers' 408/409/429/5xx, silence and network are retried after what they ask for; refusals are final.
 * Cancel: the request is aborted, what was said is kept with ` [interrupted]`, and `interrupted` is returned.
 */
import { inScope, type ActivityScope } from "../runtime/activity-scope.ts";
import type { Budget } from "../contract/budget.ts";
import { measureOf, sizeFacts } from "../context/context-size.ts";
import type { StoredMessage } from "../contract/message.ts";
import type { ModelStepFacts, ModelStepInput, StepOutcome } from "../contract/activities.ts";
import { deliverGuidance } from "./deliver-guidance.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import { enterSession } from "../runtime/enter-session.ts";
import { interruptOpenCalls } from "../runtime/interrupt-open-calls.ts";
import { holdToModels } from "../runtime/hold-to-policy.ts";
import { budgetOf, modelDeadlines } from "../config/run-policy.ts";
import { emptyAnswer, roomFor } from "./empty-answer.ts";
import { answerFacts, keepInterrupted, storeAnswer } from "./store-answer.ts";
import { estimatedCostUsd, failedAlike, recordWasted, thoughtInVain } from "./wasted-call.ts";
import { fallbackOf } from "../config/asked-model.ts";
import { withAskedModel } from "./asked-model.ts";
import { tellSwitch } from "../store/switch-model.ts";
import { ChunkBatch } from "./chunk-batch.ts";
import { createChunkWriter } from "./chunk-writer.ts";
import { ModelError, type ModelAnswer } from "../model/model.ts";
import { withChangedTools } from "./changed-tools.ts";
import { endTasks } from "./end-tasks.ts";
import { takeServerTools } from "./server-tools.ts";
import { holdToRate } from "./hold-to-rate.ts";
import { raisedLimit } from "./spent.ts";
import { failureOf, mayStepIn } from "./model-failure.ts";
import { buildMessages, prefixOf, prefixShares, type Prefix } from "../context/request.ts";
import { viewSize, type ViewSize } from "../transcript/size.ts";
import type { Session } from "../store/sessions.ts";
import { appendChunks, appendEvents } from "../store/events.ts";
import { loadView } from "../store/load-view.ts";
import { callsOf, lockRun } from "../store/transcript.ts";

/** Of one step, two minutes apart at most: a provider that is away for an hour is waited for. */
const MODEL_ATTEMPTS = 30;
/** While no one watches. Source: ours; ten pieces of 40 tokens a second, and a quarter of what a crash may take in any case. */
const UNWATCHED_GATHER_MS = 250;

export function createModelStep(deps: AgentDeps) {
  const batch = new ChunkBatch((answers) => appendChunks(deps.store, answers));
  return (input: ModelStepInput): Promise<ModelStepFacts> =>
    inScope(deps, (scope) => modelStep(deps, batch, scope, input), MODEL_ATTEMPTS);
}

async function modelStep(
  deps: AgentDeps,
  batch: ChunkBatch,
  scope: ActivityScope,
  input: ModelStepInput,
): Promise<ModelStepFacts> {
  const entered = await enterSession(deps, scope, {
    step: input.step,
    phase: "model",
    ...(input.round === undefined ? {} : { round: input.round }),
  });
  holdToModels(deps, entered);
  const fallback = fallbackOf(entered.config, input);
  const asked = await withAskedModel(deps, entered, fallback);
  const current = await withChangedTools(deps, asked, input);
  const session = input.takeTools ? await takeServerTools(deps, scope, current, input.step) : current;
  const prefix = prefixOf(session, deps.tools);
  const budget = budgetOf(session.config, prefix.tokens);
  // What compaction keeps word for word of a person's messages is what one step takes of them.
  const parked = await deliverGuidance(deps, scope, session, input, budget.userTokens);
  const outcome = await takeStep(deps, scope, { session, input, prefix, budget, batch });
  const { model } = session.config;
  const isSwitched = input.model !== undefined && input.model !== model;
  const policy = {
    ...(await raisedLimit(deps, session)),
    ...(isSwitched || input.takeTools || current !== asked
      ? {
          model,
          budget,
          prefix: prefixShares(prefix, session.tokenRatio?.ratio),
          ...(input.takeTools ? { takesTools: false as const } : {}),
        }
      : {}),
  };
  return {
    ...outcome,
    ...(parked > 0 ? { parked } : {}),
    ...(fallback === input.fallback ? {} : { isOwn: true as const }),
    ...(Object.keys(policy).length === 0 ? {} : { policy }),
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
    batch,
  }: {
    readonly session: Session;
    readonly input: ModelStepInput;
    readonly prefix: Prefix;
    readonly budget: Budget;
    readonly batch: ChunkBatch;
  },
): Promise<StepOutcome> {
  const { db } = deps.store;
  const rows = await loadAnswered(deps, scope, session, input.step);
  const { tokenRatio } = session;
  const measure = measureOf(session, prefix);
  const step = {
    deps,
    scope,
    session,
    input,
    size: viewSize({ rows, ...measure }),
    measure,
    rows,
    tokenRatio,
  };

  const paid = rows.find((row) => row.step === input.step && row.slot === "assistant");
  if (paid) return answerFacts(step, paid);
  const context = sizeFacts(step.size);
  if (context.used > budget.limitTokens)
    return { kind: "overflow", by: "estimate", context, epoch: session.epoch };

  const built = await buildMessages(db, rows, session.config.input, session.config.model);
  if (input.switched !== undefined && input.model !== undefined && input.model !== session.config.model) {
    const data = { from: input.model, to: session.config.model, reason: input.switched };
    await tellSwitch(deps.store, session, input.step, data);
  }
  const room = roomFor(session.config, budget, context.used, await thoughtInVain(step));
  const settle = await holdToRate(
    { deps, scope, session, step: input.step },
    session.config,
    context.used + room.tokens,
  );
  // In parallel with the request, not before it.
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
  const chunks = createChunkWriter({ ...deps, batch }, { ...at, model: session.config.model });
  let [said, thought] = ["", ""];
  let answer: ModelAnswer;
  try {
    answer = await deps.model.ask(
      {
        target: session.config,
        system: prefix.system,
        messages: built.messages,
        tools: prefix.tools,
        ...(input.wrapUp ? { noCalls: true } : {}),
        maxOutputTokens: room.tokens,
        cacheKey: session.id,
        deadlines: modelDeadlines(session.config, scope.elapsedMs()),
        estimatedTokens: context.used,
        gatherMs: () => (deps.notifier.isWatched(session.id) ? 0 : UNWATCHED_GATHER_MS),
      },
      (delta) => {
        if (delta.type === "text") said += delta.text;
        if (delta.type === "reasoning") thought += delta.text;
        if (delta.type === "tool-call") scope.note(`asks for ${deps.sanitizer.clean(delta.toolName)}`);
        if (delta.type === "thinking") scope.note("the model's thinking is hidden; the provider is alive");
        chunks.push(delta);
      },
      scope.signal,
    );
    await settle(answer.usage);
  } catch (error) {
    await Promise.all([chunks.end(), settle()]);
    if (scope.signal.aborted) {
      if (!scope.stoppedByPerson()) return scope.stopped();
      return {
        kind: "interrupted",
        context: await keepInterrupted(step, said, estimatedCostUsd(step, said + thought)),
        epoch: session.epoch,
      };
    }
    if (!(error instanceof ModelError)) throw error;
    const isLast = await failedAlike(step, error.class);
    await recordWasted(step, error.message, { finish: error.class, said: said + thought });
    if (error.class === "overflow")
      return { kind: "overflow", by: "provider", context, epoch: session.epoch };
    const failure = failureOf(error, isLast);
    const stepsIn = input.hasFallback === true && mayStepIn(failure, scope.attempt - scope.waits);
    const data = {
      class: error.class,
      message: failure.message,
      retryInMs: failure.retryInMs,
      final: failure.final,
    };
    await emit(deps, session, [{ type: "llm:error", step: input.step, attempt: scope.attempt, data }]);
    if (stepsIn) return { kind: "unavailable", reason: error.class, epoch: session.epoch };
    throw failure.failure;
  }
  await Promise.all([announced, chunks.end()]);
  if (answer.content.every((part) => part.type === "reasoning"))
    return emptyAnswer(step, { answer, room, budget });
  return storeAnswer(step, answer);
}

/** The view, in which each call has a result: those that an interrupt kept from beginning get theirs here. */
async function loadAnswered(
  deps: Pick<AgentDeps, "store" | "mcp">,
  { runId }: ActivityScope,
  session: Session,
  step: number,
): Promise<StoredMessage[]> {
  const { store } = deps;
  const { id: sessionId, epoch } = session;
  const rows = await loadView(store.db, sessionId);
  if (!hasOpenCalls(rows, step)) return rows;
  const stopped = await store.db.transaction(async (tx) =>
    (await lockRun(tx, sessionId, runId)) ? interruptOpenCalls(tx, sessionId, epoch) : [],
  );
  endTasks(deps, session, stopped);
  return loadView(store.db, sessionId);
}

/** Of the newest answer before this step: earlier ones were looked at in their turn. */
function hasOpenCalls(rows: readonly StoredMessage[], step: number): boolean {
  const last = rows.findLast((row) => row.role === "assistant");
  if (last?.role !== "assistant" || last.step >= step) return false;
  const results = rows.flatMap((row) => (row.role === "tool" ? row.content : []));
  return callsOf(last.content).some(
    ({ toolCallId }) => !results.some((result) => result.toolCallId === toolCallId),
  );
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
      data: {
        estimatedInput: size.next.tokens,
        estimated: size.next.estimated,
        limit,
        window: session.config.contextWindow,
      },
    },
    ...unsupported.map((mediaType) => ({
      type: "llm:unsupported-input" as const,
      step,
      attempt,
      data: {
        mediaType,
        message: `${session.config.model} does not take ${mediaType}; the model was informed in text.`,
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
