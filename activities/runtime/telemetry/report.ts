/**
 * Reports what happens in a session to the worker's log and to telemetry, in parallel with the work: nothing waits for it, and a
 * failure costs only a part of the trace.
 */
import { log } from "@temporalio/activity";
import type { ModelTarget } from "../../config/model-target.ts";
import type { StepUsage } from "../../contract/activities.ts";
import { reasonOf } from "../../contract/errors.ts";
import type { Sanitizer } from "../../redaction/sanitizer.ts";
import type { Store } from "../../store/db.ts";
import type { ModelCallRow } from "../../store/model-calls.ts";
import type { Session } from "../../store/sessions.ts";
import { traceOf, tracedEvents, tracedRun } from "../../store/traces.ts";
import {
  chatSpan,
  runSpan,
  toolSpan,
  withTexts,
  type SpanOrigin,
  type RunFactsOfSpan,
  type Texts,
  type ToolFactsOfSpan,
} from "./spans.ts";
import type { Span, Telemetry } from "./telemetry.ts";
import { estimateError } from "../../contract/request-size.ts";

/** Who reports: an activity's own dependencies and scope fit as they are. */
export interface Reporter {
  readonly deps: {
    readonly store: Store;
    readonly telemetry?: Telemetry | undefined;
    readonly sanitizer: Sanitizer;
  };
  readonly scope: {
    readonly runId: string;
    /** Earlier attempts that ended without a report. */
    readonly lostAttempts: number;
    elapsedMs(): number;
  };
  readonly session: Pick<Session, "id" | "epoch" | "parentId">;
}

/** A reporter of a run, with the run's model. */
interface RunReporter extends Reporter {
  readonly session: Reporter["session"] & Pick<Session, "config">;
}

/** A request to a model, with its estimate and its bill. */
export function reportCall(
  reporter: Reporter,
  call: ModelCallRow,
  target: ModelTarget,
  texts: Texts = {},
): void {
  logCall(call);
  const { telemetry } = reporter.deps;
  if (telemetry === undefined) return;
  const { model, usage, costUsd } = call;
  if (call.purpose === "step" && call.status === "kept") telemetry.add("longhaul.steps", 1, { model });
  for (const kind of ["input", "cached", "output", "reasoning"] as const)
    if (usage !== undefined) telemetry.add("longhaul.tokens", usage[kind], { model, kind });
  if (costUsd != null) telemetry.add("longhaul.cost", costUsd, { model });
  // A failed request has no recorded time, so the attempt's time is used.
  emit(reporter, call.durationMs ?? reporter.scope.elapsedMs(), texts, (at) =>
    chatSpan(at, call, target, reporter.scope.lostAttempts),
  );
}

/** A tool call that has its result. */
export function reportTool(
  reporter: Reporter,
  call: ToolFactsOfSpan & { readonly durationMs: number },
  texts: Texts = {},
): void {
  const { name: tool, outcome, durationMs, step, callKey, attempt } = call;
  log.info("tool call", {
    session: reporter.session.id,
    step,
    call: callKey,
    tool,
    outcome,
    attempt,
    durationMs,
  });
  reporter.deps.telemetry?.add("longhaul.tool.duration", durationMs / 1_000, { tool, outcome });
  emit(reporter, durationMs, texts, (at) => toolSpan(at, call, reporter.scope.lostAttempts));
}

export interface ReportedRound {
  readonly step: number;
  readonly round: number;
  readonly trigger: string;
  readonly strategy: string;
  readonly status: string;
  readonly tokensBefore: number;
  readonly tokensAfter: number;
}

/** A call's input and result. */
export function textsOfCall(input: unknown, result: string): Texts {
  return { "gen_ai.tool.call.arguments": JSON.stringify(input), "gen_ai.tool.call.result": result };
}

/** A compaction. Its requests are spans of their own. */
export function reportRound({ deps, session }: Reporter, round: ReportedRound): void {
  log.info("compaction", { session: session.id, ...round });
  const { strategy, trigger, status } = round;
  deps.telemetry?.add("longhaul.compactions", 1, { strategy, trigger, status });
}

export function reportStart(
  { scope, session }: Reporter,
  start: { readonly model: string; readonly step: number },
): void {
  log.info("session started", { session: session.id, run: scope.runId, ...start });
}

export interface ReportedEnd extends StepUsage {
  readonly model: string;
  readonly status: string;
  readonly steps: number;
  readonly rounds: number;
  readonly costUsd: number | null;
  readonly durationMs: number;
  /** The failure's type. */
  readonly error: string | undefined;
}

/** The end of a run, and with it its own span. */
export function reportEnd(reporter: RunReporter, end: ReportedEnd, texts: Texts): void {
  log.info("session ended", { session: reporter.session.id, run: reporter.scope.runId, ...end });
  const { status, model } = end;
  reporter.deps.telemetry?.add("longhaul.sessions", 1, { status, model });
  beside(reporter, () => emitRun(reporter, reporter.scope.runId, end, texts));
}

/** The span of the run that this run continues as new, since that run reported no end. */
export function reportContinued(
  reporter: RunReporter,
  runId: string,
  run: { readonly model: string; readonly steps: number },
): void {
  beside(reporter, () => emitRun(reporter, runId, { ...run, status: "continued", error: undefined }, {}));
}

async function emitRun(
  { deps: { store, telemetry, sanitizer }, session }: RunReporter,
  runId: string,
  run: Omit<RunFactsOfSpan, "events" | "target">,
  texts: Texts,
): Promise<void> {
  const { db } = store;
  const endMs = Date.now();
  const row = await tracedRun(db, session.id, runId);
  if (telemetry === undefined || row === undefined) return;
  const [trace, before, events] = await Promise.all([
    traceOf(db, session, runId),
    row.previous === undefined ? undefined : traceOf(db, session, row.previous),
    tracedEvents(db, session.id, row.startedAt),
  ]);
  // That run had ended and reported it before a message made it continue.
  if (run.status === "continued" && events.some(({ type }) => type === "session:ended")) return;
  const at = { trace, session, runId, endMs, durationMs: endMs - row.startedAt.getTime() };
  send(
    telemetry,
    runSpan(at, { ...run, target: session.config, previousTrace: before, events }),
    texts,
    sanitizer,
  );
}

function emit(reporter: Reporter, durationMs: number, texts: Texts, span: (at: SpanOrigin) => Span): void {
  const { deps, session } = reporter;
  const { runId } = reporter.scope;
  const endMs = Date.now();
  beside(reporter, async (telemetry) => {
    const trace = await traceOf(deps.store.db, session, runId);
    send(telemetry, span({ trace, session, runId, endMs, durationMs }), texts, deps.sanitizer);
  });
}

function send(telemetry: Telemetry, span: Span, texts: Texts, { clean }: Sanitizer): void {
  telemetry.span(telemetry.withContent ? withTexts(span, texts, clean) : span);
}

function beside({ deps: { telemetry } }: Reporter, report: (telemetry: Telemetry) => Promise<void>): void {
  if (telemetry === undefined) return;
  report(telemetry).catch((error: unknown) => log.debug("a span was not made", { reason: reasonOf(error) }));
}

/** Writes the line. It has no text of the request or the answer. */
function logCall(call: ModelCallRow): void {
  log.info("model call", callFacts(call));
}

/** The line's fields; tokens, ms, and the estimate's error in percent of the bill. */
function callFacts(call: ModelCallRow): Record<string, string | number | boolean> {
  const { usage, firstTokenMs, durationMs, finish } = call;
  const error = estimateError(call.estimatedInput, usage?.input);
  return {
    session: call.sessionId,
    step: call.step,
    attempt: call.attempt,
    purpose: call.purpose,
    model: call.model,
    status: call.status,
    ...(finish === undefined ? {} : { finish }),
    estimatedInput: call.estimatedInput,
    estimatePure: call.estimatePure,
    ...(usage === undefined
      ? { billed: false }
      : {
          input: usage.input,
          cached: usage.cached,
          output: usage.output,
          reasoning: usage.reasoning,
        }),
    ...(error === undefined ? {} : { errorPercent: Math.round(1_000 * error) / 10 }),
    ...(firstTokenMs === undefined ? {} : { firstTokenMs: Math.round(firstTokenMs) }),
    ...(durationMs === undefined ? {} : { durationMs: Math.round(durationMs) }),
  };
}
