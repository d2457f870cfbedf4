/**
 * The two writes of every step, each a single statement and so one transaction: round trips dominate a step's cost, and
 * separate statements took fifteen. Prepared by name, since planning them would cost more than running them.
 *
 * Both first take a shared lock on the run's row: a run that was superseded meanwhile writes nothing.
 */
import type pg from "pg";
import { cutChars } from "../text/cut.ts";
import type { AssistantPart, ToolCallPart, ToolOutcome, ToolResultPart } from "../contract/message.ts";
import type { Streams } from "../text/streams.ts";
import type { NewEvent } from "./event.ts";
import type { Store } from "./db.ts";
import { claimCall, findCall, type LedgerRow } from "./tool-calls.ts";
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

const COMMIT_ANSWER = `
with run as (
  select 1 from sessions where id = $1 and run_id = $2
    and exists (select 1 from stored_messages where session_id = $1 and sequence = $23) for share
), c as (
  update cursors set message_sequence = message_sequence + 1 + json_array_length($3::json),
    event_seq = event_seq + json_array_length($4::json)
  where session_id = $1 and exists (select 1 from run)
  returning message_sequence - json_array_length($3::json) as first, event_seq - json_array_length($4::json) as seq
), answer as (
  insert into stored_messages (session_id, sequence, position, epoch, step, slot, role, kind, content, meta, token_count)
  select $1, c.first, c.first, $5, $6, 'assistant', 'assistant', 'answer', $7::json, $8::json, $9 from c
), ledger as (
  insert into tool_calls (session_id, epoch, step, index, call_id, name, sequence, mcp_server)
  select $1, $5, $6, t.place - 1, t.call->>'id', t.call->>'name', c.first + t.place,
    t.call->>'server'
  from c, json_array_elements($3::json) with ordinality as t(call, place)
), bill as (
  insert into model_calls (session_id, epoch, step, attempt, purpose, model, status, finish, estimated_input, estimate_pure,
    input_tokens, cached_tokens, output_tokens, reasoning_tokens, first_token_ms, duration_ms, cache_write_tokens, cost_usd)
  select $1, $5, $6, $10, 'step', $11, 'kept', $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22 from c
), gone as (
  delete from stream_chunks where session_id = $1 and step = $6 and exists (select 1 from c)
), log as (
  insert into events (session_id, seq, epoch, step, attempt, type, data)
  select $1, c.seq + t.place, $5, $6, $10, t.event->>'type', t.event->'data'
  from c, json_array_elements($4::json) with ordinality as t(event, place)
)
select first from c`;

/**
 * Stores an answer with its calls as pending ledger rows, sequences set aside for their results, its bill and its events;
 * deletes the step's live pieces.
 * @returns false, with nothing written, if another run has taken the session over, or the messages before it are gone
 * @throws a unique violation if another attempt has stored this step's answer
 */
export async function commitAnswer(pool: pg.Pool, answer: StoredAnswer): Promise<boolean> {
  const { bill } = answer;
  const { rowCount } = await pool.query({
    name: "commit_answer",
    text: COMMIT_ANSWER,
    values: [
      bill.sessionId,
      answer.runId,
      JSON.stringify(
        answer.calls.map((call) => ({
          id: call.toolCallId,
          name: cutChars(call.toolName, 100),
          server: answer.servers?.get(call.toolName),
        })),
      ),
      JSON.stringify(answer.events.map(({ type, data }) => ({ type, data }))),
      bill.epoch,
      bill.step,
      JSON.stringify(answer.content),
      JSON.stringify(answer.meta),
      answer.tokens,
      bill.attempt,
      bill.model,
      bill.finish ?? null,
      bill.estimatedInput,
      bill.estimatePure,
      bill.usage?.input ?? null,
      bill.usage?.cached ?? null,
      bill.usage?.output ?? null,
      bill.usage?.reasoning ?? null,
      whole(bill.firstTokenMs),
      whole(bill.durationMs),
      bill.usage?.cacheWrite ?? null,
      bill.costUsd ?? null,
      answer.after,
    ],
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
  readonly content: readonly [ToolResultPart];
  readonly tokens: number;
  readonly epoch: number;
  readonly meta?: MessageMeta;
  readonly attempt: number;
  readonly events: readonly Pick<NewEvent, "type" | "data">[];
}

const COMMIT_RESULT = `
with run as (
  select 1 from sessions where id = $1 and run_id = $2 for share
), ended as (
  update tool_calls set status = $3, exit_code = $4, truncated = $5, finished_at = now(), streams = $17::json,
    started_at = coalesce(started_at, now() - $6 * interval '1 ms')
  where session_id = $1 and epoch = $7 and step = $8 and index = $9 and superseded_epoch is null
    and fence = $10 and status in ('pending', 'running') and exists (select 1 from run)
  returning sequence
), result as (
  insert into stored_messages (session_id, sequence, position, epoch, step, slot, role, kind, content, token_count, meta)
  select $1, sequence, sequence, $7, $8, 'tool:' || $9, 'tool', 'tool', $11::json, $12, $16::json from ended
), c as (
  update cursors set event_seq = event_seq + json_array_length($15::json)
  where session_id = $1 and exists (select 1 from ended) returning event_seq - json_array_length($15::json) as seq
), log as (
  insert into events (session_id, seq, epoch, step, attempt, type, data)
  select $1, c.seq + t.place, $13, $8, $14, t.event->>'type', t.event->'data'
  from c, json_array_elements($15::json) with ordinality as t(event, place)
)
select sequence from ended`;

/**
 * Stores how a call ended and its result, once and only by the attempt that holds the fence.
 * @returns false, with nothing written, if another attempt has the call or another run has the session
 */
async function commitResult(pool: pg.Pool, result: StoredResult, durationMs: number): Promise<boolean> {
  const { call } = result;
  const { rowCount } = await pool.query({
    name: "commit_result",
    text: COMMIT_RESULT,
    values: [
      call.sessionId,
      result.runId,
      result.outcome,
      result.exitCode ?? null,
      result.truncated,
      durationMs,
      call.epoch,
      call.step,
      call.index,
      result.fence,
      JSON.stringify(result.content),
      result.tokens,
      result.epoch,
      result.attempt,
      JSON.stringify(result.events.map(({ type, data }) => ({ type, data }))),
      result.meta === undefined ? null : JSON.stringify(result.meta),
      result.streams === undefined ? null : JSON.stringify(result.streams),
    ],
  });
  return rowCount === 1;
}

/**
 * The same, also in a row that is older than this attempt's claim, as after a restore: only then is its fence lower.
 * @returns false, with nothing written, if another attempt has the call or another run has the session
 */
export async function keepResult(
  { db, pool }: Pick<Store, "db" | "pool">,
  result: StoredResult,
  durationMs: number,
): Promise<boolean> {
  if (await commitResult(pool, result, durationMs)) return true;
  const { sessionId, step, index, epoch } = result.call;
  const current = await findCall(db, sessionId, step, index);
  if (current === undefined || current.epoch !== epoch || current.fence >= result.fence) return false;
  const claim = await claimCall(db, current, () => false);
  if (claim === undefined) return false;
  return commitResult(pool, { ...result, call: claim.before, fence: claim.fence }, durationMs);
}

function whole(ms: number | undefined): number | null {
  return ms === undefined ? null : Math.round(ms);
}
