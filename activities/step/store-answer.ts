/** Stores an answer in one transaction, and returns facts for the workflow. */
import { cutChars } from "../text/cut.ts";
import {
  answerText,
  type AssistantPart,
  type StoredMessage,
  type ToolCallPart,
} from "../contract/message.ts";
import { toContextSize, sizeFacts } from "../context/context-size.ts";
import { estimateMessage, type ContextSize } from "../contract/request-size.ts";
import type { StepOutcome, StepUsage } from "../contract/activities.ts";
import { rowsGone, superseded } from "../contract/failures.ts";
import { answerCostUsd } from "../config/cost.ts";
import type { ModelAnswer } from "../model/model.ts";
import type { Queryable } from "../store/db.ts";
import { commitAnswer, type StoredAnswer } from "../store/commit-step.ts";
import { type ModelCallRow, learnFrom, recordCall, recordWastedCall } from "../store/model-calls.ts";
import type { NewEvent } from "../store/event.ts";
import { appendEvents } from "../store/events.ts";
import { callsOf, findAnswer, insertPartialAnswer } from "../store/transcript.ts";
import { runInCharge } from "../store/runs.ts";
import { lockRun } from "../store/session-locks.ts";
import {
  storedContent,
  describeCall,
  callFacts,
  serversOf,
  judgeAnswer,
  judgeUsage,
  refusalNews,
  refusedParts,
  wasAskedForLess,
} from "./answer-facts.ts";
import { boundedInput } from "../store/tool-calls.ts";
import { reportCall } from "../runtime/telemetry/report.ts";
import { costFacts, nearLimit, spentWith, withLost } from "./budget.ts";
import type { StepContext } from "./step-context.ts";

const NO_USAGE: StepUsage = { input: 0, output: 0, cached: 0, reasoning: 0 };
const INTERRUPTED = " [interrupted]";

/** Stores an answer, its calls and its bill. @throws Superseded (fatal) if a newer run took over meanwhile */
export async function storeAnswer(step: StepContext, answer: ModelAnswer): Promise<StepOutcome> {
  const { deps, session, input, scope, size } = step;
  const content = storedContent(step, answer);
  const calls = callsOf(content);
  const message = { role: "assistant", content } as const;
  const tokens = estimateMessage(message);
  const usage = answer.usage ?? NO_USAGE;
  const doubt = await judgeUsage(step, answer);
  const believed = doubt.isDoubtful ? undefined : answer.usage;
  const row = { ...message, usage: believed, tokens };
  const bill = keptBill(step, answer);
  const spent = await spentWith(step, bill.costUsd ?? 0);
  const servers = serversOf(step, calls);
  const response = responseEvent(step, { content, context: nextContext(step, row), answer, bill });
  const news = {
    usageDoubtful: doubt.isNews ? (true as const) : undefined,
    ...(await refusalNews(step, answer)),
  };
  await commitOrDrop(step, {
    runId: scope.runId,
    content,
    after: step.rows.at(-1)?.sequence ?? 0,
    tokens,
    meta: {
      usage: believed,
      finish: answer.finish,
      model: session.config.model,
    },
    calls,
    servers,
    bill,
    events: [
      ...(await refusedParts(step, answer)),
      { ...response, data: { ...response.data, ...news } },
      ...nearLimit(step, spent),
      ...calls.map((call, index) => callEvent(step, call, index)),
    ],
  });
  reportCall(step, bill, session.config, { "gen_ai.output.messages": answerText(content) });
  // A wrap-up request may leave out the tools that the estimate counts: some servers have no other way to forbid calls.
  const tokenRatio =
    input.wrapUp || wasAskedForLess(answer)
      ? step.tokenRatio
      : await learnFrom(deps.store.db, session.config.model, step.tokenRatio, {
          estimatedTokens: size.pureTokens,
          usage: believed,
        });
  // From now on sizes are estimated with the ratio that this usage has updated, here as in every display.
  const measure = { ...step.measure, ratio: tokenRatio?.ratio ?? step.measure.ratio };
  return {
    ...answerEvents(step, calls, {
      finish: answer.finish,
      usage,
      context: nextContext({ ...step, measure }, row),
    }),
    ...(await judgeAnswer(step, content, answer.finish)),
    ...costFacts(spent && (await withLost(step)), bill.costUsd),
  };
}

/** SQLSTATE: another attempt has stored this step's answer. */
const UNIQUE = "23505";

/** An answer that is not stored was billed all the same. @throws why it is not stored */
async function commitOrDrop(step: StepContext, answer: StoredAnswer): Promise<void> {
  const stored = await commitAnswer(step.deps.store, answer).catch(async (error: unknown) => {
    if ((error as { readonly code?: unknown }).code === UNIQUE) await recordDropped(step, answer.bill);
    throw error;
  });
  if (stored) return;
  await recordDropped(step, answer.bill);
  throw await notStored(step, "the answer of this attempt was dropped");
}

function recordDropped({ deps }: StepContext, bill: ModelCallRow): Promise<void> {
  const error = "Another attempt or run had gone on, so the answer was dropped.";
  const dropped = { ...bill, status: "wasted", error } as const;
  return recordWastedCall(deps.store.db, dropped).catch(() => undefined);
}

/** Why nothing was stored: another run has the session, or the rows that the attempt had read are gone. */
async function notStored({ deps, scope, session }: StepContext, consequence: string) {
  const inCharge = await runInCharge(deps.store.db, session.id);
  return inCharge === undefined || inCharge === scope.runId ? rowsGone(consequence) : superseded(consequence);
}

function keptBill(step: StepContext, answer: ModelAnswer): ModelCallRow {
  const { finish, usage, firstTokenMs, durationMs } = answer;
  const costUsd = answerCostUsd(step.session.config, answer);
  return { ...toBill(step), status: "kept", finish, usage, costUsd, firstTokenMs, durationMs };
}

interface Response {
  readonly content: readonly AssistantPart[];
  /** The next request's size. */
  readonly context: ContextSize;
  readonly answer: Pick<ModelAnswer, "usage" | "durationMs" | "reason"> & { readonly finish: string };
  readonly bill: Pick<ModelCallRow, "costUsd">;
}

function responseEvent(
  { input, session }: StepContext,
  { content, context, answer, bill }: Response,
): Extract<NewEvent, { type: "llm:response" }> {
  const reasoning = content.map((part) => (part.type === "reasoning" ? part.text : "")).join("");
  const { model, provider, contextWindow } = session.config;
  return {
    type: "llm:response",
    step: input.step,
    data: {
      content: answerText(content),
      reasoning: cutChars(reasoning, 2_000),
      finish: answer.finish,
      finishReason: answer.reason,
      tokenUsage: answer.usage ?? NO_USAGE,
      contextUsed: context.used,
      contextEstimated: context.estimated,
      contextLimit: contextWindow,
      costUsd: bill.costUsd ?? null,
      durationMs: Math.round(answer.durationMs),
      model,
      provider: provider.name,
    },
  };
}

function callEvent(step: StepContext, call: ToolCallPart, index: number): NewEvent {
  const { toolCallId: callId, toolName: name } = call;
  return {
    type: "llm:tool-call",
    step: step.input.step,
    data: { callId, index, name, about: describeCall(step, call), ...boundedInput(call.input) },
  };
}

/** The fields that are the same in all usage rows of a step. */
export function toBill({ session, input, scope, size }: StepContext): Omit<ModelCallRow, "status" | "usage"> {
  return {
    sessionId: session.id,
    epoch: session.epoch,
    step: input.step,
    attempt: scope.attempt,
    purpose: "step",
    model: session.config.model,
    estimatedInput: size.next.tokens,
    estimatePure: size.next.estimated,
  };
}

/** Facts of an answer that an earlier attempt stored: nothing is sent again. */
export async function answerFacts(step: StepContext, paid: StoredMessage): Promise<StepOutcome> {
  const stored = await findAnswer(step.deps.store.db, step.session.id, step.input.step);
  const context = sizeFacts(step.size);
  if (stored?.finish === "interrupted") return { kind: "interrupted", context, epoch: step.session.epoch };
  const calls = callsOf(paid.role === "assistant" ? paid.content : []);
  const spent = await spentWith(step, 0);
  return {
    ...answerEvents(step, calls, {
      finish: stored?.finish ?? "stop",
      usage: { ...NO_USAGE, ...paid.usage },
      context,
    }),
    ...(await judgeAnswer(step, paid.role === "assistant" ? paid.content : [], stored?.finish ?? "stop")),
    ...(spent === undefined ? {} : { costUsd: spent.after }),
  };
}

/**
 * Keeps the part of an answer that arrived before a person stopped it; an empty part leaves no row.
 * @param costUsd the estimated cost of the request
 * @returns the context's size including that part
 */
export async function keepInterrupted(
  step: StepContext,
  partialText: string,
  costUsd: number | null,
): Promise<ContextSize> {
  const { deps, session, input } = step;
  const text = `${deps.sanitizer.clean(partialText)}${INTERRUPTED}`;
  const content = [{ type: "text", text }] as const;
  const message = { role: "assistant", content } as const;
  const tokens = estimateMessage(message);
  const wasSaid = partialText.trim() !== "";
  const context = wasSaid ? nextContext(step, { ...message, tokens }) : sizeFacts(step.size);
  const bill: ModelCallRow = {
    ...toBill(step),
    status: "wasted",
    finish: "interrupted",
    usage: undefined,
    costUsd,
  };
  await write(step, async (tx) => {
    if (wasSaid) {
      const row = {
        epoch: session.epoch,
        step: input.step,
        slot: "assistant",
        kind: "answer",
        message,
        tokens,
      } as const;
      await insertPartialAnswer(tx, session.id, { ...row, meta: { finish: "interrupted" } });
      // This removes the live pieces: anyone who watches from now on reads the text in this event.
      const answer = { finish: "interrupted", usage: undefined, durationMs: 0 };
      const response = responseEvent(step, { content, context, answer, bill: { costUsd: null } });
      await appendEvents(tx, session.id, session.epoch, [{ ...response, attempt: step.scope.attempt }]);
    }
    await recordCall(tx, bill);
  });
  reportCall(step, bill, session.config);
  return context;
}

async function write(step: StepContext, body: (tx: Queryable) => Promise<void>): Promise<void> {
  const { deps, session, scope } = step;
  await deps.store.db.transaction(async (tx) => {
    // The fence: a run that was superseded while it waited for the provider must not write.
    if (!(await lockRun(tx, session.id, scope.runId))) {
      throw superseded("the answer of this attempt was dropped");
    }
    await body(tx);
  });
}

function nextContext(
  { rows, measure }: StepContext,
  stored: Pick<StoredMessage, "role" | "content" | "usage" | "tokens">,
): ContextSize {
  const last = rows.at(-1);
  const sequence = (last?.sequence ?? 0) + 1;
  const row = {
    ...stored,
    sequence,
    position: sequence,
    step: (last?.step ?? 0) + 1,
    slot: "assistant",
    kind: "answer",
    prunedStep: undefined,
  } as StoredMessage;
  return toContextSize([...rows, row], measure);
}

function answerEvents(
  step: StepContext,
  calls: readonly ToolCallPart[],
  {
    finish,
    usage,
    context,
  }: { readonly finish: string; readonly usage: StepUsage; readonly context: ContextSize },
): Extract<StepOutcome, { kind: "answered" }> {
  const { input, output, cached, reasoning } = usage;
  return {
    kind: "answered",
    calls: calls.map((call) => callFacts(step, call)),
    finish,
    usage: { input, output, cached, reasoning },
    context,
    epoch: step.session.epoch,
  };
}
