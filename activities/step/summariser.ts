/** The model as a summariser: one request, its usage row, and failures in the form that the fallback chain needs. */
import { answerCostUsd } from "../config/cost.ts";
import type { ActivityScope } from "../runtime/activity-scope.ts";
import type { RunConfig } from "../config/agent-config.ts";
import type { ModelTarget } from "../config/model-target.ts";
import { cutChars } from "../text/cut.ts";
import type { TokenRatio } from "../contract/request-size.ts";
import type { RawAnswer } from "../compaction/summary-check.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import { reportCall } from "../runtime/telemetry/report.ts";
import { ModelError, type ModelAnswer } from "../model/model.ts";
import { holdToRate } from "./hold-to-rate.ts";
import { modelFailure, limitMs } from "./model-failure.ts";
import { modelDeadlines } from "../config/run-policy.ts";
import { appendEvents } from "../store/events.ts";
import { type ModelCallRow, learnFrom, recordCall } from "../store/model-calls.ts";
import type { Session } from "../store/sessions.ts";
import { SummariserOverflow, type Summarise, type SummaryRequest } from "../compaction/compaction.ts";

/** No model can write a summary now: the compaction continues without one. */
export class SummariserUnavailable extends Error {
  override readonly name = "SummariserUnavailable";
}

/** The model is limited until a time that its provider stated, for which the run waits. */
export class SummariserLimited extends Error {
  override readonly name = "SummariserLimited";
  readonly waitMs: number;

  constructor(waitMs: number, cause: ModelError) {
    super(cause.message, { cause });
    this.waitMs = waitMs;
  }
}

export interface SummariserDeps {
  readonly deps: Pick<AgentDeps, "model" | "store" | "sanitizer" | "telemetry" | "policy">;
  readonly scope: Pick<
    ActivityScope,
    "signal" | "attempt" | "elapsedMs" | "runId" | "lostAttempts" | "waits" | "waited"
  >;
  readonly session: Session;
  readonly step: number;
  /** The run waits for the end of a limit. */
  readonly waitsForLimits: boolean;
  /** The ratio of the summariser's token count to our estimate. */
  readonly tokenRatio: TokenRatio | undefined;
  /** Takes a write that must finish before the compaction does, and that nothing else waits for. */
  readonly later: (write: Promise<unknown>) => void;
}

/** The model that writes a session's summaries: one with its own window and wire, or the session's own. */
export function summariserOf(config: RunConfig): ModelTarget {
  return config.summariser === undefined
    ? config
    : { ...config.summariser, input: config.summariser.input ?? ["text"] };
}

/** The attempts of the activity that are retried after a temporary failure of the provider. */
const PATIENT_ATTEMPTS = 3;

/**
 * @returns a port that asks the configured summary model, or the session's own
 * @throws SummariserOverflow, SummariserUnavailable, SummariserLimited; a retryable ModelUnavailable in the first attempts; on abort
 *   the signal's reason
 */
export function createSummariser(summariser: SummariserDeps): Summarise {
  const { deps, scope, session, step, tokenRatio, later } = summariser;
  const target = summariserOf(session.config);
  const bill = (request: SummaryRequest, answer: ModelAnswer | undefined, error?: string) =>
    recordBill(summariser, target, { request, answer, error });
  return async (request) => {
    let answer: ModelAnswer;
    const maxOutputTokens = Math.min(request.maxOutputTokens, target.maxOutput);
    const tokens = request.tokens + maxOutputTokens;
    const settle = await holdToRate({ deps, scope, session, step }, target, tokens);
    try {
      answer = await deps.model.ask(
        {
          target,
          system: request.system,
          messages: [{ role: "user", content: [{ type: "text", text: request.text }] }],
          tools: [],
          maxOutputTokens,
          cacheKey: session.id,
          deadlines: modelDeadlines(session.config, scope.elapsedMs()),
          estimatedTokens: request.tokens,
        },
        () => undefined,
        scope.signal,
      );
      await settle(answer.usage);
    } catch (error) {
      await settle();
      // The request may be billed up to this point. The stop takes effect even if this cannot be recorded.
      if (scope.signal.aborted) await bill(request, undefined, "It was aborted.").catch(() => undefined);
      if (scope.signal.aborted || !(error instanceof ModelError)) throw error;
      await bill(request, undefined, error.message);
      const waitMs = limitMs(error);
      if (waitMs !== undefined && summariser.waitsForLimits && target.model === session.config.model) {
        await reportLimit(summariser, error, waitMs);
        throw new SummariserLimited(waitMs, error);
      }
      throw translated(error, scope.attempt - scope.waits);
    }
    later(bill(request, answer));
    later(
      learnFrom(deps.store.db, target.model, tokenRatio, {
        estimatedTokens: request.tokens,
        usage: answer.usage,
      }),
    );
    return rawAnswer(answer, (text) => deps.sanitizer.clean(text));
  };
}

/** People are told until when, as for a step. A summariser of its own is not waited for: there is a summary without a model. */
async function reportLimit(
  { deps, scope, session, step }: SummariserDeps,
  error: ModelError,
  waitMs: number,
): Promise<void> {
  const message = deps.sanitizer.clean(error.message);
  const data = { class: error.class, message, retryInMs: waitMs, final: false };
  const event = { type: "llm:error", step, attempt: scope.attempt, data } as const;
  await appendEvents(deps.store.db, session.id, session.epoch, [event]);
}

interface SummaryCall {
  readonly request: SummaryRequest;
  /** Absent if the request failed, or was aborted. */
  readonly answer: ModelAnswer | undefined;
  readonly error: string | undefined;
}

function recordBill(
  { deps, scope, session, step }: SummariserDeps,
  target: ModelTarget,
  { request, answer, error }: SummaryCall,
): Promise<void> {
  const call: ModelCallRow = {
    sessionId: session.id,
    epoch: session.epoch,
    step,
    attempt: scope.attempt,
    purpose: "summary",
    model: target.model,
    status: answer === undefined ? "wasted" : "kept",
    estimatedInput: request.tokens,
    estimatePure: true,
    usage: answer?.usage,
    costUsd: answerCostUsd(target, answer),
    ...(answer === undefined
      ? {}
      : { finish: answer.finish, firstTokenMs: answer.firstTokenMs, durationMs: answer.durationMs }),
    ...(error === undefined ? {} : { error: cutChars(deps.sanitizer.clean(error), 1_000) }),
  };
  reportCall({ deps, scope, session }, call, target);
  return recordCall(deps.store.db, call);
}

function translated(error: ModelError, attempt: number): Error {
  if (error.class === "overflow") return new SummariserOverflow(error.message, { cause: error });
  // No retry after a timeout or an unreadable answer: there is a summary without a model.
  const { failure, final } = modelFailure(error, error.class === "too-long" || attempt > 1);
  return final || attempt >= PATIENT_ATTEMPTS
    ? new SummariserUnavailable(error.message, { cause: error })
    : failure;
}

function rawAnswer(answer: ModelAnswer, clean: (text: string) => string): RawAnswer {
  const text = answer.content.map((part) => (part.type === "text" ? part.text : "")).join("");
  const hasToolCall = answer.content.some((part) => part.type === "tool-call");
  return { text: clean(text), finish: answer.finish, hasToolCall };
}
