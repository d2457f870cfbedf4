/**
 * A session's conversation: in the public Agent Trajectory Interchange Format (ATIF 1.7), for tools that read runs of any
 * agent, and as people read it in a terminal or a pager. Only the live line: abandoned and undone rows are in the project's
 * own export.
 */
import { costUsd } from "../../activities/config/cost.ts";
import type { Price } from "../../activities/config/model-target.ts";
import type {
  AssistantPart,
  FilePart,
  ToolCallPart,
  ToolResultPart,
  UserPart,
} from "../../activities/contract/message.ts";
import type { readWhole, SessionRow } from "../../activities/store/reading.ts";
import { firstString, harmless, stamp, present } from "../console/format.ts";
import { plural } from "../../activities/text/format.ts";
import type { Style } from "../console/output.ts";

type Whole = Awaited<ReturnType<typeof readWhole>>;
type MessageRow = Whole["messages"][number];
type ModelCallRow = Whole["modelCalls"][number];
type ResultRow = MessageRow & { readonly call: Whole["toolCalls"][number] | undefined };
type Config = {
  readonly model?: string;
  readonly price?: Price | undefined;
  readonly tier?: string | undefined;
};

const SCHEMA_VERSION = "ATIF-v1.7";

export interface TrajectoryStep {
  readonly step_id: number;
  readonly timestamp: string;
  readonly source: "system" | "user" | "agent";
  readonly message: string;
  readonly extra: Record<string, unknown>;
  readonly reasoning_content?: string;
  readonly tool_calls?: readonly {
    readonly tool_call_id: string;
    readonly function_name: string;
    readonly arguments: Record<string, unknown>;
  }[];
  readonly observation?: {
    readonly results: readonly {
      readonly source_call_id: string;
      readonly content: string;
      readonly extra: Record<string, unknown>;
    }[];
  };
  readonly metrics?: Record<string, number | undefined>;
}

/** Who a step's source is to a reader. */
export const WHO = { user: "you", agent: "agent", system: "note" } as const;

/** @param version of the agent that made the run */
export function trajectoryDocument(row: SessionRow, whole: Whole, version: string) {
  const config = row.config as Config;
  const live = whole.messages.filter((message) => message.supersededEpoch === null);
  const ledger = new Map(whole.toolCalls.map((call) => [call.sequence, call]));
  const results = live
    .filter((message) => message.role === "tool")
    .map((message) => ({ ...message, call: ledger.get(message.sequence) }));
  const bills = whole.modelCalls.filter((call) => call.status === "kept" && call.purpose === "step");
  const steps = live
    .filter((message) => message.role !== "tool")
    .map((message, index) => ({
      step_id: index + 1,
      ...(message.role === "assistant" && message.kind !== "summary"
        ? agentStep(message, results, billOf(bills, message), config)
        : spokenStep(message)),
    }));
  const paid = whole.modelCalls.map((call) => costOfCall(call, config));
  const total = (pick: (call: ModelCallRow) => number | null) =>
    whole.modelCalls.reduce((sum, call) => sum + (pick(call) ?? 0), 0);
  return {
    schema_version: SCHEMA_VERSION,
    session_id: row.id,
    agent: { name: "longhaul", version, model_name: config.model || undefined },
    steps,
    notes:
      "Steps of source system are the agent's own notes and summaries. A message whose extra.compactedRound is set was replaced by that round's summary in later requests. Totals hold every model call, summaries and wasted attempts too.",
    final_metrics: {
      total_prompt_tokens: total((call) => call.inputTokens),
      total_completion_tokens: total((call) => call.outputTokens),
      total_cached_tokens: total((call) => call.cachedTokens),
      total_cost_usd:
        config.price || paid.some((cost) => cost !== null)
          ? paid.reduce<number>((sum, cost) => sum + (cost ?? 0), 0)
          : undefined,
      total_steps: steps.length,
    },
    extra: { status: row.status, epoch: row.epoch, compactionRounds: whole.compactionEvents.length },
  };
}

/** Whether a step is part of the conversation: its first one is the system prompt. */
export const isSaid = ({ extra }: TrajectoryStep): boolean => extra["kind"] !== "system";

type Body = Omit<TrajectoryStep, "step_id">;

/** A person's message, or one of ours to the model. */
function spokenStep(message: MessageRow): Body {
  const person = message.kind === "task" || message.kind === "guidance";
  const parts = message.content as readonly (UserPart | AssistantPart)[];
  const { by } = (message.meta ?? {}) as { readonly by?: readonly string[] };
  const head = headOf(message);
  return {
    ...head,
    ...(by === undefined ? {} : { extra: { ...head.extra, by: by.join(", ") } }),
    source: person ? "user" : "system",
    message: textOf(parts),
  };
}

function agentStep(
  message: MessageRow,
  results: readonly ResultRow[],
  bill: ModelCallRow | undefined,
  config: Config,
): Body {
  const parts = message.content as readonly AssistantPart[];
  const calls = parts.filter((part) => part.type === "tool-call");
  const reasoning = parts.flatMap((part) => (part.type === "reasoning" ? [part.text] : [])).join("\n");
  const answers = calls.flatMap((call) => resultOf(call, message, results));
  return {
    ...headOf(message),
    source: "agent",
    message: textOf(parts),
    reasoning_content: reasoning === "" ? undefined : reasoning,
    tool_calls: calls.length > 0 ? calls.map(callOf) : undefined,
    observation: answers.length > 0 ? { results: answers } : undefined,
    metrics: bill ? metricsOf(bill, config) : undefined,
  };
}

function headOf({ createdAt, kind, step, sequence, compactedRound }: MessageRow) {
  return {
    timestamp: createdAt.toISOString(),
    extra: { kind, step, sequence, compactedRound: compactedRound ?? undefined },
  };
}

function callOf({ toolCallId, toolName, input }: ToolCallPart) {
  const known = typeof input === "object" && input !== null && !Array.isArray(input);
  return {
    tool_call_id: toolCallId,
    function_name: toolName,
    // Input that was not a JSON object is kept unchanged.
    arguments: known ? (input as Record<string, unknown>) : { input },
  };
}

function resultOf(call: ToolCallPart, { step }: MessageRow, results: readonly ResultRow[]) {
  const row = results.find((result) => result.step === step && partOf(result).toolCallId === call.toolCallId);
  if (row === undefined) return [];
  const { text, files = [], outcome } = partOf(row);
  const { exitCode = null, streams = null } = row.call ?? {};
  return [
    {
      source_call_id: call.toolCallId,
      content: [text, ...files.map(fileNote)].join("\n"),
      extra: {
        outcome,
        exitCode: exitCode ?? undefined,
        streams: streams ?? undefined,
      },
    },
  ];
}

const partOf = ({ content }: ResultRow) => (content as [ToolResultPart])[0];

/** The newest kept bill of the answer's step in its epoch. */
function billOf(bills: readonly ModelCallRow[], { epoch, step }: MessageRow): ModelCallRow | undefined {
  return bills.findLast((call) => call.epoch === epoch && call.step === step);
}

function usageOf({ inputTokens, cachedTokens, cacheWriteTokens, outputTokens }: ModelCallRow) {
  if (inputTokens === null) return undefined;
  return {
    input: inputTokens,
    cached: cachedTokens ?? 0,
    cacheWrite: cacheWriteTokens ?? undefined,
    output: outputTokens ?? 0,
  };
}

/** USD as calculated when the call was made; of a model that had no price then, by the session's. */
export function costOfCall(call: ModelCallRow, { price, tier }: Config): number | null {
  return call.costUsd ?? costUsd(price, usageOf(call), { tier });
}

function metricsOf(call: ModelCallRow, config: Config): Record<string, number | undefined> {
  const usage = usageOf(call);
  const cost = costOfCall(call, config);
  if (usage === undefined) return {};
  return {
    prompt_tokens: usage.input,
    completion_tokens: usage.output,
    cached_tokens: usage.cached,
    cost_usd: cost ?? undefined,
  };
}

function textOf(parts: readonly (UserPart | AssistantPart)[]): string {
  return parts
    .flatMap((part) => {
      if (part.type === "text") return [part.text];
      return part.type === "file" ? [fileNote(part)] : [];
    })
    .join("\n");
}

function fileNote({ filename, mediaType }: FilePart): string {
  return `[${filename ?? "file"} (${mediaType})]`;
}

/** Last lines of a result that show its outcome; `--full` has all of them. */
const RESULT_LINES = 8;

/** A conversation as people read it in a terminal or a pager. */
export interface TranscriptOptions {
  readonly full: boolean;
  readonly style: Style;
  /** Who started the session: only others are named. */
  readonly owner?: string | null;
}

/** Each message under a line that says who, in which step and when; calls with the end of their results below. */
export function transcriptText(steps: readonly TrajectoryStep[], options: TranscriptOptions): string {
  return steps.map((step) => messageText(step, options)).join("\n");
}

/** Where a message stands in the session. @param more facts of the view, in their place */
export function stepFacts({ extra }: TrajectoryStep, ...more: readonly (string | false)[]): string[] {
  const { kind, step, compactedRound } = extra;
  return present(
    Number(step) > 0 && `step ${String(step)}`,
    kind === "summary" && "summary",
    ...more,
    typeof compactedRound === "number" && `in the summary of round ${compactedRound}`,
  );
}

function messageText(step: TrajectoryStep, options: TranscriptOptions): string {
  const { by } = step.extra;
  const facts = stepFacts(
    step,
    typeof by === "string" && by !== options.owner && harmless(by),
    stamp(new Date(step.timestamp)),
  );
  const { style } = options;
  const lines = present(
    `${style("bold", `── ${WHO[step.source]}`)} ${style("dim", facts.join(" · "))}`,
    step.message !== "" && harmless(step.message).trimEnd(),
    ...(step.tool_calls ?? []).flatMap((call) => callLines(step, call, options)),
  );
  return `${lines.join("\n")}\n`;
}

function callLines(
  step: TrajectoryStep,
  call: NonNullable<TrajectoryStep["tool_calls"]>[number],
  { full, style }: TranscriptOptions,
): string[] {
  const result = step.observation?.results.find((entry) => entry.source_call_id === call.tool_call_id);
  const outcome = typeof result?.extra["outcome"] === "string" ? result.extra["outcome"] : "no result";
  const about = harmless(firstString(call.arguments)).trim().split("\n");
  const head = `${style("cyan", "▸")} ${style("bold", call.function_name)} ${about.join("\n    ")}`;
  const body = harmless(result?.content ?? "")
    .trimEnd()
    .split("\n");
  const shownLines = full ? body : body.slice(-RESULT_LINES);
  const hidden = body.length - shownLines.length;
  return present(
    `${head}  ${style(outcome === "completed" ? "dim" : "red", outcome)}`,
    hidden > 0 && style("dim", `    │ … ${plural(hidden, "line")} above, shown by --full`),
    ...(result === undefined ? [] : shownLines.map((line) => style("dim", `    │ ${line}`))),
  );
}
