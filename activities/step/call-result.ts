/** How a call ends: its result is stored with its full output, was stored before, or is a refusal by the session's rules. */
import type { ActivityScope } from "../runtime/activity-scope.ts";
import type { ToolResultPart, ToolCallPart } from "../contract/message.ts";
import { estimateMessage } from "../contract/request-size.ts";
import type { ToolFacts } from "../contract/activities.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import { openedSkill, type FoundNotes } from "./folder-notes.ts";
import {
  resultEvent,
  callKey,
  findCall,
  finishCall,
  resultOf,
  type LedgerRow,
  type AskedCall,
} from "../store/tool-calls.ts";
import { appendEvents } from "../store/events.ts";
import type { NewEvent } from "../store/event.ts";
import { insertMessage } from "../store/transcript.ts";
import { keepResult } from "../store/commit-step.ts";
import { storeFullOutput } from "../runtime/full-output.ts";
import { reportTool, textsOfCall } from "../runtime/telemetry/report.ts";
import type { ServerAsks } from "../tools/tool.ts";
import type { CallInHand, Invoked } from "./perform-call.ts";
import { createHash } from "node:crypto";
import { retryable, rowsGone, superseded } from "../contract/failures.ts";
import type { Queryable } from "../store/db.ts";
import { runInCharge } from "../store/runs.ts";
import { verdictNow } from "../tools/permissions/approval.ts";
import type { Session } from "../store/sessions.ts";
import type { InvokedTool } from "../tools/invoke.ts";

/** The facts of a call without a result yet: the workflow asks people first. */
export function waitsFor({ idsOnly }: AgentDeps, { server, questions }: ServerAsks): ToolFacts {
  const serverAsks = {
    server,
    questions: questions.map(({ id, about, isOptional }) => ({
      id,
      about: idsOnly === true ? "" : about,
      isOptional,
    })),
  };
  return { outcome: "error", tokens: 0, ms: 0, hash: "", serverAsks };
}

interface Finished extends CallInHand {
  readonly fence: number;
  readonly durationMs: number;
  readonly notes: FoundNotes | undefined;
}

export async function storeResult(
  deps: AgentDeps,
  scope: ActivityScope,
  finished: Finished,
  result: Invoked,
): Promise<ToolFacts> {
  const { session, call, row, fence, durationMs, notes } = finished;
  if (result.truncated && result.whole)
    await storeFullOutput(deps, { sessionId: session.id, handle: callKey(row) }, result.whole.pieces());
  const part: ToolResultPart = {
    type: "tool-result",
    toolCallId: call.toolCallId,
    toolName: call.toolName,
    outcome: result.outcome,
    text: result.text + (notes?.text ?? ""),
    files: result.files.length > 0 ? result.files : undefined,
  };
  const message = { role: "tool", content: [part] } as const;
  const tokens = estimateMessage(message, session.config);
  const { outcome, exitCode, truncated } = result;
  const events = [
    resultEvent(row, { outcome, text: result.text, durationMs, exitCode, truncated }),
    ...(notes?.events ?? []),
    ...(outcome === "completed" ? openedSkill(session, call) : []),
  ];
  const { runId } = scope;
  const { epoch } = session;
  const end = {
    runId,
    call: row,
    fence,
    outcome,
    exitCode,
    streams: result.streams,
    truncated,
    background: result.background,
    endedCommands: result.endedCommands,
    content: message.content,
    tokens,
    epoch,
    attempt: scope.attempt,
    events,
    meta: notes === undefined || notes.notes.length === 0 ? undefined : { notes: notes.notes },
  };
  if (!(await keepResult(deps.store, end, durationMs)))
    return storedElsewhere(deps.store.db, scope, finished);
  const { name, mcpServer: server } = row;
  const ids = { step: row.step, attempt: scope.attempt, name, callKey: callKey(row), callId: row.callId };
  reportTool(
    { deps, scope, session },
    { ...ids, outcome, exitCode, server: server ?? undefined, durationMs },
    textsOfCall(call.input, part.text),
  );
  return { outcome, tokens, ms: durationMs, hash: callHash(call, part.text), ...factsOf(result) };
}

const factsOf = ({ isLive, asksForDomains, background }: Invoked) => ({
  isLive: isLive === true ? (true as const) : undefined,
  asksForDomains,
  background: background === "running" ? (true as const) : undefined,
});

/** Whether a call has its result. */
export function callHasEnded({ status }: LedgerRow): boolean {
  return status !== "pending" && status !== "running";
}

export async function endedBefore(db: Queryable, row: LedgerRow, call: ToolCallPart): Promise<ToolFacts> {
  const stored = await resultOf(db, row);
  const text = (stored?.content as [ToolResultPart] | undefined)?.[0].text ?? "";
  return {
    outcome: row.status as ToolFacts["outcome"],
    tokens: stored?.tokens ?? 0,
    ms: 0,
    hash: callHash(call, text),
  };
}

/**
 * Why a result was refused: another attempt stored one first, another attempt is still running the call, or a newer run has
 * claimed the session. Any attempt may find this, also the one that Temporal waits for.
 * @throws Superseded (fatal); RecordMissing, CallTaken (retryable)
 */
export async function storedElsewhere(
  db: Queryable,
  { runId }: Pick<ActivityScope, "runId">,
  { row, call }: { readonly row: LedgerRow; readonly call: ToolCallPart },
): Promise<ToolFacts> {
  const [current, inCharge] = await Promise.all([
    findCall(db, row.sessionId, row.step, row.index),
    runInCharge(db, row.sessionId),
  ]);
  if (inCharge !== undefined && inCharge !== runId) throw superseded("the result of this call was dropped");
  if (!current) throw rowsGone("the result of this call was dropped");
  if (callHasEnded(current)) return endedBefore(db, current, call);
  throw retryable(
    "CallTaken",
    "An earlier attempt has claimed this call again and still runs; this attempt's result was dropped. It is tried again.",
  );
}

/** Equal for the same call with the same result. Eight hex characters are plenty among a session's last calls. */
export function callHash(call: ToolCallPart, text: string): string {
  return createHash("sha256")
    .update(JSON.stringify([call.toolName, call.input, text]))
    .digest("hex")
    .slice(0, 8);
}

/** What the workflow learns of a call that a person must allow first. */
export const NEEDS_APPROVAL: ToolFacts = {
  outcome: "error",
  tokens: 0,
  ms: 0,
  hash: "",
  needsApproval: true,
};

/** Why the session's rules refuse a call; `ask` means that no person has allowed it yet. */
export async function rulesRefusal(
  db: Queryable,
  session: Session,
  { call, row }: Pick<AskedCall, "call" | "row">,
): Promise<InvokedTool | "ask" | undefined> {
  if (session.config.permissions.length === 0 || row.status !== "pending") return undefined;
  const { step, index } = row;
  const verdict = await verdictNow(db, { session, call, step, index });
  if (verdict.action === "allow") return undefined;
  if (verdict.action === "ask") return "ask";
  const { match } = verdict.rule;
  const about = match === undefined ? "" : ` (${match})`;
  return {
    outcome: "error",
    text: `Calls like this are not allowed in this session${about}, and it was not run.`,
    files: [],
    exitCode: undefined,
    truncated: false,
  };
}

interface Answered {
  readonly session: Session;
  readonly row: LedgerRow;
  readonly call: ToolCallPart;
  readonly events: readonly NewEvent[];
}

/** Stores the call's result, as for a result that a tool returns. */
export async function giveResult(
  tx: Queryable,
  { session, row, call, events }: Answered,
  { outcome, text }: Pick<ToolResultPart, "outcome" | "text">,
): Promise<ToolFacts> {
  const part: ToolResultPart = {
    type: "tool-result",
    toolCallId: call.toolCallId,
    toolName: call.toolName,
    outcome,
    text,
  };
  const message = { role: "tool", content: [part] } as const;
  const tokens = estimateMessage(message, session.config);
  await finishCall(tx, row, row.fence, { outcome, exitCode: undefined, truncated: false });
  await insertMessage(tx, session.id, row.sequence, {
    epoch: row.epoch,
    step: row.step,
    slot: `tool:${row.index}`,
    kind: "tool",
    message,
    tokens,
  });
  await appendEvents(tx, session.id, session.epoch, [
    ...events,
    { ...resultEvent(row, { outcome, text, durationMs: 0 }), step: row.step },
  ]);
  return { outcome, tokens, ms: 0, hash: callHash(call, text) };
}
