/**
 * One model step: deliver what people said, build the request, ask, store the answer, return facts.
 *
 * Idempotency key: (session, live epoch, step): a stored answer is found before anything is sent, so a crash after the
 * write costs no second call. Side effects: messages, ledger rows, a bill, events. Heartbeat: by timer. Retry class:
 * providers' 408/409/429/5xx, silence and network errors are retried after the time they ask for; refusals are final.
 * Cancel: the request is aborted, what was said is kept with ` [interrupted]`, and `interrupted` is returned.
 */
import {
  type Prefix,
  buildPrefix,
  prefixShares,
  type BuiltMessages,
  buildMessages,
} from "../context/request.ts";
import { fallbackOf } from "../config/asked-model.ts";
import { calculateBudget } from "../config/budget.ts";
import type { ModelStepFacts, ModelStepInput, StepOutcome } from "../contract/activities.ts";
import { type ActivityScope, inScope } from "../runtime/activity-scope.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import { enterSession } from "../runtime/enter-session.ts";
import { holdToModels } from "../runtime/hold-to-policy.ts";
import { appendChunks, appendEvents } from "../store/events.ts";
import type { Session } from "../store/sessions.ts";
import { withAskedModel, type StepContext, emitEvents, eventsOfRequest } from "./step-context.ts";
import { withChangedTools, takeServerTools } from "./catalogues.ts";
import { ChunkBatch, ChunkWriter, WATCHED_MS } from "./chunk-writer.ts";
import { deliverGuidance } from "./guidance.ts";
import { currentDelegateLimit } from "./budget.ts";
import type { Budget } from "../contract/budget.ts";
import type { StoredMessage } from "../contract/message.ts";
import { modelDeadlines } from "../config/run-policy.ts";
import { toMeasure, sizeFacts, sizeAtLimit } from "../context/context-size.ts";
import type { ModelAnswer } from "../model/model.ts";
import { saysNothing } from "../model/answer.ts";
import { interruptOpenCalls, missingEnd, endTasks } from "../runtime/interrupt-open-calls.ts";
import { loadView } from "../store/load-view.ts";
import { announceSwitch, setWindow } from "../store/session-settings.ts";
import { callsOf } from "../store/transcript.ts";
import { lockRun } from "../store/session-locks.ts";
import { viewSize } from "../transcript/size.ts";
import {
  emptyAnswer,
  answerRoom,
  type Room,
  afterFailure,
  type Received,
  thoughtInVain,
} from "./failed-request.ts";
import { fatal } from "../contract/failures.ts";
import { givingBack, holdToBudgets, type OverBudget } from "./hold-to-budgets.ts";
import { holdToRate } from "./hold-to-rate.ts";
import { answerFacts, storeAnswer } from "./store-answer.ts";
import { TRIES } from "../contract/tries.ts";
import type { SessionServices } from "../workspace/services.ts";

/** What has ended in this worker's sandboxes is told at the step's beginning. */
interface Lookers {
  readonly services?: Pick<SessionServices, "look"> | undefined;
  /** At the session's commands in the background, if its sandbox is open here. */
  readonly look?: ((session: Session, step: number) => Promise<void>) | undefined;
}

export function createModelStep(deps: AgentDeps, lookers: Lookers = {}) {
  const batch = new ChunkBatch((answers) => appendChunks(deps.store, answers));
  return (input: ModelStepInput): Promise<ModelStepFacts> =>
    inScope(deps, (scope) => modelStep(deps, { batch, ...lookers }, scope, input), TRIES.step);
}

async function modelStep(
  deps: AgentDeps,
  { batch, services, look }: { readonly batch: ChunkBatch } & Lookers,
  scope: ActivityScope,
  input: ModelStepInput,
): Promise<ModelStepFacts> {
  const entered = await enterSession(deps, scope, {
    step: input.step,
    phase: "model",
    round: input.round,
  });
  holdToModels(deps, entered);
  const fallback = fallbackOf(entered.config, input);
  const askedSession = await withAskedModel(deps, entered, fallback);
  const current = await withChangedTools(deps, askedSession, input);
  const session = input.takeTools ? await takeServerTools(deps, scope, current, input.step) : current;
  const prefix = buildPrefix(session, deps.tools);
  const budget = calculateBudget(session.config, prefix.tokens);
  // One step takes as much of a person's messages as compaction keeps verbatim.
  const { step, note, guidance } = input;
  await services?.look(session, step);
  await look?.(session, step);
  const delivery = await deliverGuidance(deps, scope, session, {
    step,
    note,
    guidance,
    roomTokens: budget.userTokens,
  });
  const outcome = await takeStep({ deps, scope, session, input }, { prefix, budget, batch });
  const servedWindow =
    outcome.kind === "overflow" || outcome.kind === "answered" ? outcome.servedWindow : undefined;
  const isNews = input.takeTools === true || current !== askedSession || servedWindow !== undefined;
  const policy = {
    ...(await currentDelegateLimit(deps, session)),
    ...(isNews || isOtherModel(session, input) ? figuresOf(session, prefix, servedWindow) : {}),
    ...(input.takeTools ? { takesTools: false as const } : {}),
  };
  return {
    ...outcome,
    ...delivery,
    isOwn: fallback === input.fallback ? undefined : true,
    policy: Object.keys(policy).length === 0 ? undefined : policy,
  };
}

const isOtherModel = ({ config }: Session, { model }: ModelStepInput): boolean =>
  model !== undefined && model !== config.model;

/** What the run decides by from now on. @param servedWindow the window that the model's server has named in this step */
function figuresOf({ config, tokenRatio }: Session, prefix: Prefix, servedWindow: number | undefined) {
  return {
    model: config.model,
    budget: calculateBudget(config, prefix.tokens, servedWindow),
    prefix: prefixShares(prefix, tokenRatio?.ratio),
  };
}

/**
 * How long pieces are gathered. Watched: as long as between two writes, so that no piece waits twice. Unwatched: half of what a
 * crash may lose anyway. Source: decision 0051.
 */
const GATHER_MS = { watched: WATCHED_MS, unwatched: 500 };

interface StepRequest {
  readonly prefix: Prefix;
  readonly budget: Budget;
  /** Of this worker. */
  readonly batch: ChunkBatch;
}

/** From the view in Postgres to the stored answer. @throws the failures that the activity is retried for, and Superseded (fatal) */
async function takeStep(
  base: Pick<StepContext, "deps" | "scope" | "session" | "input">,
  request: StepRequest,
): Promise<StepOutcome> {
  const { deps, scope, session, input } = base;
  const { prefix, budget } = request;
  const rows = await loadAnswered(deps, scope, session, input);
  const measure = toMeasure(session, prefix);
  const { tokenRatio } = session;
  const step: StepContext = { ...base, rows, measure, tokenRatio, size: viewSize({ rows, ...measure }) };

  const paid = rows.find((row) => row.step === input.step && row.slot === "assistant");
  if (paid) return answerFacts(step, paid);
  const context = await sizeAtLimit({ deps, scope, session, prefix, rows }, sizeFacts(step.size), budget);
  if (context.used > budget.limitTokens)
    return { kind: "overflow", by: "estimate", context, epoch: session.epoch };

  const built = await buildMessages(deps.store.db, rows, session.config.input, session.config.model);
  await reportSwitch(step);
  const room = answerRoom(session.config, budget, context.used, await thoughtInVain(step));
  const response = await ask(step, { ...request, built, room });
  if ("outcome" in response) return response.outcome;
  const { answer } = response;
  if (saysNothing(answer.content)) return emptyAnswer(step, { answer, room, budget });
  const outcome = await storeAnswer(step, answer);
  if (answer.served === undefined || outcome.kind !== "answered") return outcome;
  await takeServedWindow(step, answer.served);
  return { ...outcome, servedWindow: answer.served.contextWindow };
}

/** The server runs the model with less than was assumed: the session has that window from the next step on. */
async function takeServedWindow(
  step: StepContext,
  { contextWindow: servedWindow, message }: NonNullable<ModelAnswer["served"]>,
): Promise<void> {
  const { deps, session, input } = step;
  const { model, contextWindow } = session.config;
  await setWindow(deps.store.db, session.id, { model, servedWindow });
  const text = `${message} ${servedWindow} tokens count from now on, in place of ${contextWindow}.`;
  const data = { mediaType: "window", message: deps.sanitizer.clean(text) };
  await emitEvents(step, [{ type: "llm:unsupported-input", step: input.step, data }]);
}

async function reportSwitch({ deps, session, input }: StepContext): Promise<void> {
  const { model } = session.config;
  if (input.switched === undefined || input.model === undefined || input.model === model) return;
  const data = { from: input.model, to: model, reason: input.switched };
  await announceSwitch(deps.store, session, input.step, data);
}

/** Asks the model and streams its answer to watchers. @returns what follows instead if it gave no answer */
async function ask(
  step: StepContext,
  {
    prefix,
    budget,
    batch,
    built,
    room,
  }: StepRequest & { readonly built: BuiltMessages; readonly room: Room },
): Promise<{ readonly answer: ModelAnswer } | { readonly outcome: StepOutcome }> {
  const { deps, scope, session, input } = step;
  const { config } = session;
  const { used } = sizeFacts(step.size);
  const rate = { deps, scope, session, step: input.step };
  const release = await holdToBudgets(rate, config, { input: used, output: room.tokens });
  if ("overBudget" in release) return overBudget(step, release);
  const settle = await holdToRate(rate, config, used + room.tokens).catch(givingBack(release));
  // In parallel with the request, not before it.
  const announced = emitEvents(step, eventsOfRequest(step, budget.triggerTokens, built.unsupported));
  announced.catch(() => undefined);
  const at = { sessionId: session.id, epoch: session.epoch, step: input.step, attempt: scope.attempt };
  const chunks = new ChunkWriter({ ...deps, batch }, { ...at, model: config.model });
  const received: Received = { text: "", reasoning: "" };
  let answer: ModelAnswer;
  try {
    answer = await deps.model.ask(
      {
        target: config,
        system: prefix.system,
        messages: built.messages,
        tools: prefix.tools,
        noCalls: input.wrapUp ? true : undefined,
        maxOutputTokens: room.tokens,
        cacheKey: session.id,
        deadlines: modelDeadlines(config, scope.elapsedMs()),
        estimatedTokens: used,
        gatherMs: () => GATHER_MS[deps.announcements.isWatched(session.id) ? "watched" : "unwatched"],
      },
      (delta) => {
        if (delta.type === "text" || delta.type === "reasoning") received[delta.type] += delta.text;
        if (delta.type === "tool-call") scope.note(`asks for ${deps.sanitizer.clean(delta.toolName)}`);
        if (delta.type === "thinking") scope.note("the model's thinking is hidden; the provider is alive");
        chunks.push(delta);
      },
      scope.signal,
    );
    await settle(answer.usage);
  } catch (error) {
    await Promise.all([chunks.end(), settle()]);
    const outcome = await afterFailure(step, error, received);
    // A failed request that was billed has its row by now.
    await release();
    return { outcome };
  }
  await Promise.all([announced, chunks.end()]);
  return { answer };
}

/** @throws PolicyRefused (fatal) if the session has not begun */
function overBudget(
  { deps, session, input }: StepContext,
  { overBudget: reason, asks }: OverBudget,
): { readonly outcome: StepOutcome } {
  if (input.step === 1) throw fatal("PolicyRefused", reason);
  const { config, epoch, parentId } = session;
  // A delegate's end is a result for its parent, which asks. A last step that sums up is not worth a question.
  const isAsked =
    deps.policy?.onBudget !== "stop" &&
    config.questions.mode === "ask" &&
    parentId === undefined &&
    input.wrapUp !== true;
  return { outcome: { kind: "over-budget", reason, epoch, asks: isAsked ? asks : undefined } };
}

/** The view with a result for each call: calls that an interrupt kept from starting get theirs here. */
async function loadAnswered(
  deps: Pick<AgentDeps, "store" | "mcp">,
  { runId }: ActivityScope,
  session: Session,
  { step, results: reportedCount = 0 }: Pick<ModelStepInput, "step" | "results">,
): Promise<StoredMessage[]> {
  const { store } = deps;
  const { id: sessionId, epoch } = session;
  const rows = await loadView(store.db, sessionId);
  const stored = resultsOfLast(rows, step);
  if (!stored.hasOpen) return rows;
  // The run knows of more results than there are rows: the database was restored from an older copy.
  const missing = reportedCount - stored.count;
  const stopped = await store.db.transaction(async (tx) => {
    if (!(await lockRun(tx, sessionId, runId))) return [];
    if (missing <= 0) return interruptOpenCalls(tx, sessionId, epoch, { goesOn: true });
    const data = { from: step - 1, to: step - 1, calls: missing };
    await appendEvents(tx, sessionId, epoch, [{ type: "record:missing", step: step - 1, data }]);
    return interruptOpenCalls(tx, sessionId, epoch, { endOf: missingEnd, goesOn: true });
  });
  endTasks(deps, session, stopped);
  return loadView(store.db, sessionId);
}

/** Looks only at the newest answer before this step: earlier answers were looked at in their own steps. */
function resultsOfLast(
  rows: readonly StoredMessage[],
  step: number,
): { readonly hasOpen: boolean; readonly count: number } {
  const last = rows.findLast((row) => row.role === "assistant");
  if (last?.role !== "assistant" || last.step >= step) return { hasOpen: false, count: 0 };
  const results = rows.flatMap((row) => (row.role === "tool" ? row.content : []));
  const calls = callsOf(last.content);
  const count = calls.filter(({ toolCallId }) =>
    results.some((result) => result.toolCallId === toolCallId),
  ).length;
  return { hasOpen: count < calls.length, count };
}
