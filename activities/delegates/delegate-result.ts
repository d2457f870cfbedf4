/** The result of a delegate as its parent's model reads it, and how it is stored, once. */
import type { SessionStatus, ToolFacts } from "../contract/activities.ts";
import type { DelegateEnd, SettleDelegateInput } from "../contract/calls.ts";
import { dollars, plural } from "../text/format.ts";
import { andMore, takeFirst } from "../text/lists.ts";
import type { Limit } from "../contract/limits.ts";
import type { ToolOutcome, ToolCallPart, ToolResultPart } from "../contract/message.ts";
import { truncateText } from "../text/cut.ts";
import type { ChangedFile, NotApplied } from "./delegate-files.ts";
import type { ActivityScope } from "../runtime/activity-scope.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import { resultEvent, callKey, type LedgerRow } from "../store/tool-calls.ts";
import { callHash, storedElsewhere } from "../step/call-result.ts";
import { keepResult } from "../store/commit-step.ts";
import type { NewEvent } from "../store/event.ts";
import type { Session } from "../store/sessions.ts";
import { reportTool, textsOfCall } from "../runtime/telemetry/report.ts";
import { estimateMessage } from "../contract/request-size.ts";

const MAX_NAMED = 100;

export interface EndedDelegate {
  readonly child: string;
  readonly status: SessionStatus;
  readonly limit?: Limit | undefined;
  readonly steps: number;
  readonly costUsd: number | null;
  readonly answer: string;
  readonly error: { readonly type?: string; readonly message?: string } | undefined;
  readonly closed: DelegateEnd | undefined;
  readonly stopped: SettleDelegateInput["stopped"];
}

export interface ReturnedFiles {
  readonly applied: readonly string[];
  /** Of them, those that were changed in both places. */
  readonly merged?: readonly string[];
  readonly notApplied: readonly NotApplied[];
  /** Files that were not merged, with their content. */
  readonly left: readonly ChangedFile[];
}

/** A delegate that ended by a limit has a result like any other. */
export function outcomeOfDelegate({ status, stopped }: EndedDelegate): ToolOutcome {
  if (stopped !== undefined) return "interrupted";
  return status === "completed" || status === "max_steps" ? "completed" : "error";
}

export interface DelegateResult {
  readonly text: string;
  readonly truncated: boolean;
  /** The whole answer and the files that could not be merged, if `text` is only a part. */
  readonly whole: string | undefined;
}

/** @param maxChars of its last answer; the rest is behind the call's handle */
export function delegateResult(
  end: EndedDelegate,
  files: ReturnedFiles,
  { handle, maxChars }: { readonly handle: string; readonly maxChars: number },
): DelegateResult {
  const { left } = files;
  const answer = truncateText(end.answer.trim(), { maxChars, handle });
  const isWhole = !answer.truncated && left.length === 0;
  const text = [headline(end), answer.text, filesText(files, left.length === 0 ? undefined : handle)];
  return {
    text: text.filter((part) => part !== "").join("\n\n"),
    truncated: !isWhole,
    whole: isWhole ? undefined : [end.answer.trim(), ...left.map(wholeFile)].join("\n\n"),
  };
}

function headline(end: EndedDelegate): string {
  const cost = end.costUsd === null || end.costUsd === 0 ? "" : `, ${dollars(end.costUsd)}`;
  const steps = `${plural(end.steps, "step")}${cost}`;
  return `[Delegate ${end.child}: ${endText(end)}; ${steps}.${end.answer.trim() === "" ? " It gave no answer." : " Its last answer:"}]`;
}

const LIMITS: Readonly<Record<Limit, string>> = {
  steps: "its limit of steps",
  cost: "the limit of cost",
  deadline: "its deadline",
  budget: "a budget of the operator's",
};

function endText({ status, limit, error, closed, stopped }: EndedDelegate): string {
  if (closed === "not-started") return "was stopped before it began";
  if (stopped === "interrupt") return "was cancelled, since the user interrupted this step";
  if (stopped === "cancel") return "was cancelled with this session";
  switch (status) {
    case "completed":
      return "finished";
    case "max_steps":
      return `was stopped at ${LIMITS[limit ?? "steps"]}`;
    case "cancelled":
      return "was cancelled by the user";
    case "failed":
      return `failed (${error?.type ?? "Unexpected"}: ${error?.message ?? "no reason is known"})`;
    case "active":
    case "waiting":
      return closed === "terminated" ? "was terminated by the operator" : "ended without an outcome";
  }
}

function filesText({ applied, merged = [], notApplied }: ReturnedFiles, handle: string | undefined): string {
  const lines: string[] = [];
  if (applied.length > 0) lines.push(`Files applied (${applied.length}): ${named(applied)}`);
  if (merged.length > 0)
    lines.push(`Of these, merged with what was changed here meanwhile: ${named(merged)}`);
  if (notApplied.length > 0) {
    const where = handle === undefined ? "" : `; the delegate's versions: read_output ${handle}`;
    lines.push(`Not applied (${notApplied.length})${where}`);
    const { shown, more } = takeFirst(notApplied, MAX_NAMED);
    lines.push(...shown.map(({ path, reason }) => `- ${path}: ${reason}`));
    if (more > 0) lines.push(`- and ${more} more`);
  }
  return lines.join("\n");
}

function named(paths: readonly string[]): string {
  const { shown, more } = takeFirst(paths, MAX_NAMED);
  return `${shown.join(", ")}${andMore(more)}`;
}

function wholeFile({ path, bytes }: ChangedFile): string {
  if (bytes === undefined) return `--- ${path} (removed by the delegate)`;
  const text = new TextDecoder().decode(bytes);
  return text.includes("\0") || text.includes("�")
    ? `--- ${path} (${bytes.byteLength} bytes, not text)`
    : `--- ${path} (as the delegate left it)\n${text}`;
}

interface Call {
  readonly session: Session;
  /** As it is now, with the fence of its claim. */
  readonly row: LedgerRow;
  readonly call: ToolCallPart;
}

interface Result {
  readonly outcome: ToolOutcome;
  readonly text: string;
  readonly truncated: boolean;
  readonly durationMs: number;
  readonly events?: readonly NewEvent[];
}

/** @throws Superseded (fatal) if a newer run has the session; RecordMissing, CallTaken (retryable) */
export async function storeDelegateResult(
  deps: Pick<AgentDeps, "store" | "telemetry" | "sanitizer">,
  scope: Pick<ActivityScope, "runId" | "attempt" | "elapsedMs" | "lostAttempts">,
  { session, row, call }: Call,
  { outcome, text, truncated, durationMs, events = [] }: Result,
): Promise<ToolFacts> {
  const { toolCallId, toolName } = call;
  const part: ToolResultPart = { type: "tool-result", toolCallId, toolName, outcome, text };
  const message = { role: "tool", content: [part] } as const;
  const tokens = estimateMessage(message, session.config);
  const stored = await keepResult(
    deps.store,
    {
      runId: scope.runId,
      call: row,
      fence: row.fence,
      outcome,
      exitCode: undefined,
      truncated,
      content: message.content,
      tokens,
      epoch: session.epoch,
      attempt: scope.attempt,
      events: [resultEvent(row, { outcome, text, durationMs, truncated }), ...events],
    },
    durationMs,
  );
  if (stored) {
    const report = {
      step: row.step,
      attempt: scope.attempt,
      name: toolName,
      callKey: callKey(row),
      callId: toolCallId,
    };
    reportTool({ deps, scope, session }, { ...report, outcome, durationMs }, textsOfCall(call.input, text));
    return { outcome, tokens, ms: durationMs, hash: callHash(call, text) };
  }
  return storedElsewhere(deps.store.db, scope, { row, call });
}
