/**
 * The names and attributes of spans. Only this file has names of the semantic conventions for generative AI, which are all in
 * development; only those that are settled enough are used.
 */
import type { ModelTarget } from "../../config/model-target.ts";
import { cutChars } from "../../text/cut.ts";
import type { ModelCallRow } from "../../store/model-calls.ts";
import type { Session } from "../../store/sessions.ts";
import { callSpanId, toSpanId, type Trace } from "../../store/traces.ts";
import type { Attributes, Span } from "./telemetry.ts";

/** The longest text in a span. Source: what Claude Code cuts at; collectors refuse messages of 4 MB. */
const MAX_TEXT_CHARS = 60_000;
const AGENT = "longhaul";

/** Where a span belongs: the session, its part and its run. */
export interface SpanOrigin {
  readonly trace: Trace;
  readonly session: Pick<Session, "id" | "epoch">;
  readonly runId: string;
  readonly endMs: number;
  readonly durationMs: number;
}

/** A model's name and its provider. */
type Target = Pick<ModelTarget, "provider" | "modelName">;

/** Texts that go along if the operator wants them, masked. */
export type Texts = Readonly<Record<string, string | undefined>>;

export function chatSpan(at: SpanOrigin, call: ModelCallRow, target: Target, attempts: Lost): Span {
  const { usage } = call;
  return {
    ...placed(
      at,
      toSpanId(at.session.id, at.runId, at.session.epoch, call.step, call.purpose, call.attempt, at.endMs),
    ),
    name: `chat ${target.modelName}`,
    kind: "client",
    parentId: at.trace.rootId,
    attributes: {
      ...common(at, call.step, call.attempt),
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": target.provider.name,
      "gen_ai.request.model": target.modelName,
      // A request without usage had no answer: the error's type says how it ended.
      ...(usage === undefined
        ? {}
        : {
            ...(call.finish === undefined ? {} : { "gen_ai.response.finish_reasons": [call.finish] }),
            "gen_ai.usage.input_tokens": usage.input,
            "gen_ai.usage.output_tokens": usage.output,
            "gen_ai.usage.cache_read.input_tokens": usage.cached,
            "gen_ai.usage.reasoning.output_tokens": usage.reasoning,
          }),
      "longhaul.purpose": call.purpose,
      "longhaul.status": call.status,
      "longhaul.estimated_input_tokens": call.estimatedInput,
      ...(call.costUsd == null ? {} : { "longhaul.cost_usd": call.costUsd }),
      ...(call.firstTokenMs === undefined
        ? {}
        : { "longhaul.first_token_ms": Math.round(call.firstTokenMs) }),
    },
    events: lostEvents(at, attempts),
    error: call.status === "wasted" ? (call.finish ?? "wasted") : undefined,
  };
}

export interface ToolFactsOfSpan {
  readonly step: number;
  readonly attempt: number;
  readonly name: string;
  /** As the ledger names it, and as the model does. */
  readonly callKey: string;
  readonly callId: string;
  readonly outcome: string;
  readonly exitCode?: number | undefined;
  readonly server?: string | undefined;
}

export function toolSpan(at: SpanOrigin, call: ToolFactsOfSpan, attempts: Lost): Span {
  return {
    ...placed(at, callSpanId(at.session.id, at.runId, call.callKey)),
    name: `execute_tool ${call.name}`,
    kind: "internal",
    parentId: at.trace.rootId,
    attributes: {
      ...common(at, call.step, call.attempt),
      "gen_ai.operation.name": "execute_tool",
      "gen_ai.tool.name": call.name,
      "gen_ai.tool.call.id": call.callId,
      "longhaul.call": call.callKey,
      "longhaul.outcome": call.outcome,
      ...(call.exitCode === undefined ? {} : { "longhaul.exit_code": call.exitCode }),
      ...(call.server === undefined ? {} : { "longhaul.mcp.server": call.server }),
    },
    events: lostEvents(at, attempts),
    error: call.outcome === "completed" ? undefined : call.outcome,
  };
}

export interface RunFactsOfSpan {
  readonly status: string;
  readonly model: string;
  readonly target: Target;
  readonly steps: number;
  readonly rounds?: number;
  readonly error?: string | undefined;
  readonly costUsd?: number | null;
  readonly previousTrace?: Trace | undefined;
  readonly events: readonly { readonly type: string; readonly at: Date; readonly id: string | null }[];
}

/** The run as a whole. Its links lead to the run before it. */
export function runSpan(at: SpanOrigin, run: RunFactsOfSpan): Span {
  const { previousTrace: before } = run;
  return {
    ...placed(at, at.trace.rootId),
    name: `invoke_agent ${AGENT}`,
    kind: "internal",
    parentId: at.trace.parentId,
    attributes: {
      ...common(at),
      "gen_ai.operation.name": "invoke_agent",
      "gen_ai.agent.name": AGENT,
      "gen_ai.provider.name": run.target.provider.name,
      "gen_ai.request.model": run.target.modelName,
      "longhaul.status": run.status,
      "longhaul.step": run.steps,
      ...(run.rounds === undefined ? {} : { "longhaul.compaction_rounds": run.rounds }),
      ...(run.costUsd == null ? {} : { "longhaul.cost_usd": run.costUsd }),
    },
    events: run.events
      .filter(({ type }) => type !== "session:ended")
      .map(({ type, at: when, id }) => {
        const attributes: Attributes = id === null ? {} : { "longhaul.question": id };
        return { name: type, atMs: when.getTime(), attributes };
      }),
    links: before === undefined ? [] : [{ traceId: before.traceId, spanId: before.rootId }],
    error: run.error,
  };
}

/** Adds texts to a span: each is cut, and messages get the form of the conventions. Empty texts are left out. */
export function withTexts(span: Span, texts: Texts, clean: (text: string) => string): Span {
  const attributes: Record<string, string> = {};
  for (const [name, text] of Object.entries(texts))
    if (text) attributes[name] = formed(name, cutChars(clean(text), MAX_TEXT_CHARS));
  return { ...span, attributes: { ...span.attributes, ...attributes } };
}

/** Who wrote each text. Viewers parse a message, so it is sent as JSON instead of plain text. */
const ROLES: Readonly<Record<string, string>> = {
  "gen_ai.input.messages": "user",
  "gen_ai.output.messages": "assistant",
};

function formed(name: string, text: string): string {
  const role = ROLES[name];
  return role === undefined ? text : JSON.stringify([{ role, parts: [{ type: "text", content: text }] }]);
}

/** Attempts that ended with their worker before this one. They have no span: it was lost with them. */
export type Lost = number;

function lostEvents({ endMs, durationMs }: SpanOrigin, lost: Lost): NonNullable<Span["events"]> {
  return lost === 0
    ? []
    : [
        {
          name: "earlier attempt lost",
          atMs: endMs - durationMs,
          attributes: { "longhaul.lost_attempts": lost },
        },
      ];
}

function placed({ trace, endMs, durationMs }: SpanOrigin, spanId: string) {
  return { traceId: trace.traceId, spanId, startMs: endMs - durationMs, endMs };
}

function common({ session, runId }: SpanOrigin, step?: number, attempt?: number): Attributes {
  return {
    "gen_ai.conversation.id": session.id,
    "longhaul.run": runId,
    "longhaul.epoch": session.epoch,
    ...(step === undefined ? {} : { "longhaul.step": step }),
    ...(attempt === undefined ? {} : { "longhaul.attempt": attempt }),
  };
}
