/**
 * The two writes of every step, each a single statement and so one transaction: round trips dominate a step's cost, and
 * separate statements took fifteen. Prepared by name, since planning them would cost more than running them.
 *
 * Both first take a shared lock on the run's row: a run that was superseded meanwhile writes nothing.
 */
import { sql } from "drizzle-orm";
import { cutChars } from "../text/cut.ts";
import type { AssistantPart, ToolCallPart, ToolOutcome, ToolResultPart } from "../contract/message.ts";
import type { Streams } from "../text/streams.ts";
import type { NewEvent } from "./event.ts";
import type { Store } from "./db.ts";
import { appending, insertLog } from "./events.ts";
import { isUntold } from "./background.ts";
import { isLive } from "./live-line.ts";
import { cursors, modelCalls, sessions, storedMessages, streamChunks, toolCalls } from "./schema/index.ts";
import { assigned, insertFrom } from "./statements.ts";
import { claimCall, findCall, outputHandle, type LedgerRow } from "./tool-calls.ts";
import type { MessageMeta } from "./transcript.ts";
import type { ModelCallRow } from "./model-calls.ts";

export interface StoredAnswer {
  readonly runId: string;
  readonly content: readonly AssistantPart[];
  /** The sequence of the last message that the model was sent. */
  readonly after: number;
  readonly tokens: number;
  readonly meta: MessageMeta;
  readonly calls: readonly ToolCallPart[];
  /** The servers of calls to MCP tools, by the tool's name. */
  readonly servers?: ReadonlyMap<string, string>;
  readonly bill: ModelCallRow;
  readonly events: readonly NewEvent[];
}

const parameter = (name: string) => sql.placeholder(name);

const log = insertLog(sql`c`, {
  epoch: parameter("eventEpoch"),
  step: parameter("step"),
  attempt: parameter("attempt"),
});
const calls = sql`json_array_length(${parameter("calls")}::json)`;
const newEvents = sql`json_array_length(${parameter("events")}::json)`;
const { messageSequence, eventSeq } = cursors;
const isRun = sql`${sessions.id} = ${parameter("sessionId")} and ${sessions.runId} = ${parameter("runId")}`;
const ofStep = { sessionId: parameter("sessionId"), epoch: parameter("epoch"), step: parameter("step") };

const sendAnswer = appending(
  "commit_answer",
  sql`
with run as (
  select 1 from ${sessions} where ${isRun} and exists (select 1 from ${storedMessages}
    where ${storedMessages.sessionId} = ${parameter("sessionId")} and ${storedMessages.sequence} = ${parameter("after")}) for share
), c as (
  update ${cursors} set ${assigned(
    [messageSequence, sql`${messageSequence} + 1 + ${calls}`],
    [eventSeq, sql`${eventSeq} + ${newEvents}`],
  )}
  where ${cursors.sessionId} = ${parameter("sessionId")} and exists (select 1 from run)
  returning ${messageSequence} - ${calls} as first, ${eventSeq} - ${newEvents} as seq_before
), message as (${insertFrom(
    storedMessages,
    {
      ...ofStep,
      sequence: sql`c.first`,
      position: sql`c.first`,
      slot: sql`'assistant'`,
      role: sql`'assistant'`,
      kind: sql`'answer'`,
      content: sql`${parameter("content")}::json`,
      meta: sql`${parameter("meta")}::json`,
      tokenCount: parameter("tokens"),
    },
    sql`from c`,
  )}
), ledger as (${insertFrom(
    toolCalls,
    {
      ...ofStep,
      index: sql`t.place - 1`,
      callId: sql`t.call->>'id'`,
      name: sql`t.call->>'name'`,
      sequence: sql`c.first + t.place`,
      mcpServer: sql`t.call->>'server'`,
    },
    sql`from c, json_array_elements(${parameter("calls")}::json) with ordinality as t(call, place)`,
  )}
), bill as (${insertFrom(
    modelCalls,
    {
      ...ofStep,
      attempt: parameter("attempt"),
      purpose: sql`'step'`,
      model: parameter("model"),
      status: sql`'kept'`,
      finish: parameter("finish"),
      estimatedInput: parameter("estimatedInput"),
      estimatePure: parameter("estimatePure"),
      inputTokens: parameter("input"),
      cachedTokens: parameter("cached"),
      outputTokens: parameter("output"),
      reasoningTokens: parameter("reasoning"),
      firstTokenMs: parameter("firstTokenMs"),
      durationMs: parameter("durationMs"),
      cacheWriteTokens: parameter("cacheWrite"),
      costUsd: parameter("costUsd"),
    },
    sql`from c`,
  )}
), gone as (
  delete from ${streamChunks} where ${streamChunks.sessionId} = ${parameter("sessionId")}
    and ${streamChunks.step} = ${parameter("step")} and exists (select 1 from c)
), log as (${log})
select first from c`,
);

/**
 * Stores an answer with its calls as pending ledger rows, sequences set aside for their results, its bill and its events;
 * deletes the step's live pieces.
 * @returns false, with nothing written, if another run has taken the session over, or the messages before it are gone
 * @throws a unique violation if another attempt has stored this step's answer
 */
export async function commitAnswer(
  store: Pick<Store, "db" | "pool">,
  answer: StoredAnswer,
): Promise<boolean> {
  const { bill } = answer;
  const { rowCount } = await sendAnswer(store, [bill.sessionId], {
    sessionId: bill.sessionId,
    runId: answer.runId,
    calls: JSON.stringify(
      answer.calls.map((call) => ({
        id: call.toolCallId,
        name: cutChars(call.toolName, 100),
        server: answer.servers?.get(call.toolName),
      })),
    ),
    events: JSON.stringify(answer.events.map(({ type, data }) => ({ type, data }))),
    epoch: bill.epoch,
    eventEpoch: bill.epoch,
    step: bill.step,
    content: JSON.stringify(answer.content),
    meta: JSON.stringify(answer.meta),
    tokens: answer.tokens,
    attempt: bill.attempt,
    model: bill.model,
    finish: bill.finish ?? null,
    estimatedInput: bill.estimatedInput,
    estimatePure: bill.estimatePure,
    input: bill.usage?.input ?? null,
    cached: bill.usage?.cached ?? null,
    output: bill.usage?.output ?? null,
    reasoning: bill.usage?.reasoning ?? null,
    firstTokenMs: rounded(bill.firstTokenMs),
    durationMs: rounded(bill.durationMs),
    cacheWrite: bill.usage?.cacheWrite ?? null,
    costUsd: bill.costUsd ?? null,
    after: answer.after,
  });
  return rowCount === 1;
}

export interface StoredResult {
  readonly runId: string;
  readonly call: LedgerRow;
  /** The fence that the claim returned: a later claim makes this write fail. */
  readonly fence: number;
  readonly outcome: ToolOutcome;
  readonly exitCode: number | undefined;
  readonly streams?: Streams | undefined;
  readonly truncated: boolean;
  /** The call is a command in the background, of whose end the model was not told or was. */
  readonly background?: "running" | "told" | undefined;
  /** Commands in the background of whose ends the result tells the model. */
  readonly endedCommands?: readonly string[] | undefined;
  readonly content: readonly [ToolResultPart];
  readonly tokens: number;
  readonly epoch: number;
  readonly meta?: MessageMeta;
  readonly attempt: number;
  readonly events: readonly Pick<NewEvent, "type" | "data">[];
}

const sendResult = appending(
  "commit_result",
  sql`
with run as (
  select 1 from ${sessions} where ${isRun} for share
), ended as (
  update ${toolCalls} set ${assigned(
    [toolCalls.status, parameter("outcome")],
    [toolCalls.exitCode, parameter("exitCode")],
    [toolCalls.truncated, parameter("truncated")],
    [toolCalls.finishedAt, sql`now()`],
    [toolCalls.streams, sql`${parameter("streams")}::json`],
    [toolCalls.background, parameter("background")],
    [
      toolCalls.startedAt,
      sql`coalesce(${toolCalls.startedAt}, now() - ${parameter("durationMs")} * interval '1 ms')`,
    ],
  )}
  where ${isLive(toolCalls, sql`${parameter("sessionId")}`)} and ${toolCalls.epoch} = ${parameter("epoch")}
    and ${toolCalls.step} = ${parameter("step")} and ${toolCalls.index} = ${parameter("index")}
    and ${toolCalls.fence} = ${parameter("fence")} and ${toolCalls.status} in ('pending', 'running') and exists (select 1 from run)
  returning ${toolCalls.sequence} as place
), told as (
  update ${toolCalls} set ${assigned([toolCalls.background, sql`'told'`])}
  where ${isLive(toolCalls, sql`${parameter("sessionId")}`)} and ${isUntold} and exists (select 1 from ended)
    and ${outputHandle} in (select json_array_elements_text(${parameter("told")}::json))
), message as (${insertFrom(
    storedMessages,
    {
      ...ofStep,
      sequence: sql`place`,
      position: sql`place`,
      slot: sql`'tool:' || ${parameter("index")}`,
      role: sql`'tool'`,
      kind: sql`'tool'`,
      content: sql`${parameter("content")}::json`,
      tokenCount: parameter("tokens"),
      meta: sql`${parameter("meta")}::json`,
    },
    sql`from ended`,
  )}
), c as (
  update ${cursors} set ${assigned([eventSeq, sql`${eventSeq} + ${newEvents}`])}
  where ${cursors.sessionId} = ${parameter("sessionId")} and exists (select 1 from ended)
  returning ${eventSeq} - ${newEvents} as seq_before
), log as (${log})
select place from ended`,
);

/**
 * Stores how a call ended and its result, once and only by the attempt that holds the fence.
 * @returns false, with nothing written, if another attempt has the call or another run has the session
 */
async function commitResult(
  store: Pick<Store, "db" | "pool">,
  result: StoredResult,
  durationMs: number,
): Promise<boolean> {
  const { call } = result;
  const { rowCount } = await sendResult(store, [call.sessionId], {
    sessionId: call.sessionId,
    runId: result.runId,
    outcome: result.outcome,
    exitCode: result.exitCode ?? null,
    truncated: result.truncated,
    durationMs,
    epoch: call.epoch,
    step: call.step,
    index: call.index,
    fence: result.fence,
    content: JSON.stringify(result.content),
    tokens: result.tokens,
    eventEpoch: result.epoch,
    attempt: result.attempt,
    events: JSON.stringify(result.events.map(({ type, data }) => ({ type, data }))),
    meta: result.meta === undefined ? null : JSON.stringify(result.meta),
    streams: result.streams === undefined ? null : JSON.stringify(result.streams),
    background: result.background ?? null,
    told: JSON.stringify(result.endedCommands ?? []),
  });
  return rowCount === 1;
}

/**
 * The same, also in a row that is older than this attempt's claim, as after a restore: only then is its fence lower.
 * @returns false, with nothing written, if another attempt has the call or another run has the session
 */
export async function keepResult(
  store: Pick<Store, "db" | "pool">,
  result: StoredResult,
  durationMs: number,
): Promise<boolean> {
  if (await commitResult(store, result, durationMs)) return true;
  const { sessionId, step, index, epoch } = result.call;
  const { db } = store;
  const current = await findCall(db, sessionId, step, index);
  if (current === undefined || current.epoch !== epoch || current.fence >= result.fence) return false;
  const claim = await claimCall(db, current, () => false);
  if (claim === undefined) return false;
  return commitResult(store, { ...result, call: claim.before, fence: claim.fence }, durationMs);
}

function rounded(ms: number | undefined): number | null {
  return ms === undefined ? null : Math.round(ms);
}
