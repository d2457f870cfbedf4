/** Forks a session: copies its rows up to a step under a new id. The original is not changed. */
import { sql } from "drizzle-orm";
import { estimateMessage } from "../contract/request-size.ts";
import type { Message } from "../contract/message.ts";
import type { Queryable, Store } from "./db.ts";
import { filesAsOf } from "./saved-bytes.ts";
import { outputHandle } from "./tool-calls.ts";
import { insertMessage, takeSequences } from "./transcript.ts";
import { applyMarks } from "./view-marks.ts";

export interface Fork {
  readonly from: string;
  readonly to: string;
  /** The first step of the live line that is not copied. */
  readonly beforeStep: number;
}

export type Forked =
  | { readonly kind: "forked" }
  /** The new id already belongs to a session. */
  | { readonly kind: "taken" }
  /** The last step to be copied has calls that still run. */
  | { readonly kind: "unfinished"; readonly step: number };

/**
 * Copies a session's live line up to the end of a step, in one transaction with one snapshot: messages, ledger, rounds,
 * whole outputs and the files. Blobs are shared; bills, events and waiting messages are not copied.
 * Rows keep their epochs and sequences, so that handles in the text lead to the same outputs.
 */
export async function forkSession(store: Pick<Store, "db">, fork: Fork): Promise<Forked> {
  const { from, to } = fork;
  return store.db.transaction(
    async (tx): Promise<Forked> => {
      const step = await unfinishedStep(tx, fork);
      if (step !== null) return { kind: "unfinished", step };
      const made = await tx.execute(sql`
        insert into sessions (id, task, config, instructions, epoch, owner)
        select ${to}, task, config, instructions, epoch, owner from sessions where id = ${from} on conflict do nothing`);
      if (made.rowCount === 0) return { kind: "taken" };
      await copyConversation(tx, fork);
      await copyDecisions(tx, fork);
      await copyFiles(tx, fork);
      // Each session has its own branch; publications belong to the original and are not copied.
      await tx.execute(sql`
        insert into repositories (session_id, url, ref, base_commit, branch)
        select ${to}, url, ref, base_commit, replace(branch, ${from}, ${to}) from repositories where session_id = ${from}`);
      await tx.execute(sql`
        insert into cursors (session_id, message_sequence) select ${to}, greatest(
          coalesce((select max(sequence) from stored_messages where session_id = ${to}), 0),
          coalesce((select max(sequence) from tool_calls where session_id = ${to}), 0))`);
      await informModel(tx, fork);
      return { kind: "forked" };
    },
    { isolationLevel: "repeatable read" },
  );
}

type Transaction = Parameters<Parameters<Store["db"]["transaction"]>[0]>[0];

/** The last step to be copied that has calls which still run; null if there is none. */
async function unfinishedStep(tx: Transaction, { from, beforeStep }: Fork): Promise<number | null> {
  const { rows } = await tx.execute<{ step: number | null }>(sql`
    select max(step) as step from tool_calls where session_id = ${from} and superseded_epoch is null
    and step < ${beforeStep} and status in ('pending', 'running')`);
  return rows[0]?.step ?? null;
}

async function copyConversation(tx: Transaction, { from, to, beforeStep }: Fork): Promise<void> {
  // A round made at the first step that is not copied is made again when it is due.
  await tx.execute(sql`
    insert into compaction_events (session_id, epoch, step, round, trigger, strategy, status, reason, attempts,
      tokens_before, tokens_after, from_sequence, to_sequence, summary_content, replaced, duration_ms, created_at)
    select ${to}, epoch, step, round, trigger, strategy, status, reason, attempts,
      tokens_before, tokens_after, from_sequence, to_sequence, summary_content, replaced, duration_ms, created_at
    from compaction_events where session_id = ${from} and superseded_epoch is null and step < ${beforeStep} order by id`);
  await tx.execute(sql`
    insert into stored_messages (session_id, sequence, position, epoch, step, slot, role, kind, content, meta, token_count,
      pruned_step, created_at)
    select ${to}, sequence, position, epoch, step, slot, role, kind, content, meta, token_count,
      case when pruned_step < ${beforeStep} then pruned_step end, created_at
    from stored_messages where session_id = ${from} and superseded_epoch is null and step < ${beforeStep} order by id`);
  // Later marks are copied as ones of another line: a round that was undone later is in force again.
  await tx.execute(sql`
    insert into view_marks (session_id, epoch, step, kind, round, round_epoch, sequences, request_id, created_at,
      superseded_epoch, superseded_by)
    select ${to}, epoch, step, kind, round, round_epoch, sequences, request_id, created_at,
      case when step >= ${beforeStep} then 0 end, case when step >= ${beforeStep} then array[0] end
    from view_marks where session_id = ${from} and superseded_epoch is null order by id`);
  await applyMarks(tx, to);
  await tx.execute(sql`
    insert into tool_calls (session_id, epoch, step, index, call_id, name, sequence, status, fence, container,
      exit_code, streams, truncated, started_at, finished_at)
    select ${to}, epoch, step, index, call_id, name, sequence, status, fence, container, exit_code, streams, truncated,
      started_at, finished_at
    from tool_calls where session_id = ${from} and superseded_epoch is null and step < ${beforeStep}`);
  await tx.execute(sql`
    insert into tool_outputs (session_id, handle, part, "offset", content)
    select ${to}, handle, part, "offset", content from tool_outputs where session_id = ${from} and handle in (
      select ${outputHandle("c")} from tool_calls c where session_id = ${to})`);
  // So that a reset of the new session can deliver the copied messages again.
  await tx.execute(sql`
    insert into guidance (session_id, id, parts, queued_at, author, delivered_sequence)
    select ${to}, id, parts, queued_at, author, delivered_sequence from guidance where session_id = ${from}
    and delivered_sequence in (select sequence from stored_messages where session_id = ${to}) order by ordinal`);
}

/** Copies what people had allowed and approved by then. */
async function copyDecisions(tx: Transaction, { from, to, beforeStep }: Fork): Promise<void> {
  await tx.execute(sql`
    insert into egress_rules (session_id, epoch, step, domain, by) select ${to}, epoch, step, domain, by
    from egress_rules where session_id = ${from} and superseded_epoch is null and step < ${beforeStep} order by id`);
  await tx.execute(sql`
    insert into questions (session_id, epoch, id, step, call_index, kind, text, input_hash, asked_at, status, answer,
      answered_by, answered_at)
    select ${to}, epoch, id, step, call_index, kind, text, input_hash, asked_at, status, answer, answered_by, answered_at
    from questions where session_id = ${from} and kind = 'plan' and status = 'answered' and step < ${beforeStep}`);
}

/**
 * Copies the newest checkpoint of the copied steps and the initial one, with all they build on. A delegate's checkpoints build
 * on those of its parent, which are shared.
 */
async function copyFiles(tx: Transaction, { from, to, beforeStep }: Fork): Promise<void> {
  // What others build on comes first.
  const { rows } = await tx.execute<{ id: string; parent: string | null }>(sql`
    with recursive live as (
      select id, step, epoch from checkpoints
      where session_id = ${from} and superseded_epoch is null and step < ${beforeStep}
    ), chain as (
      select id, parent_id from checkpoints where id in (
        (select id from live order by step desc, epoch desc limit 1)
        union (select id from live where step = 0 order by epoch desc limit 1))
      union
      select c.id, c.parent_id from checkpoints c join chain on c.id = chain.parent_id where c.session_id = ${from}
    )
    select id, parent_id as parent from chain order by id`);
  const copies = new Map<string, string>();
  for (const { id, parent } of rows) {
    const below = parent === null ? null : (copies.get(parent) ?? parent);
    // One at a time: a client's role may give no row a number that its sequence has not just given it.
    const made = await tx.execute<{ id: string }>(sql`
      insert into checkpoints (session_id, epoch, step, parent_id, manifest, pack)
      select ${to}, epoch, step, ${below}::bigint, manifest, pack from checkpoints where id = ${id} returning id`);
    copies.set(id, made.rows[0]?.id ?? id);
  }
}

const originOf = (from: string) => `[This conversation continues from an earlier point of session ${from}. `;

/** Whether a session was made by this very order. */
export async function isFork(db: Queryable, { from, to, beforeStep }: Fork): Promise<boolean> {
  const { rows } = await db.execute(sql`select 1 from stored_messages
    where session_id = ${to} and step = ${beforeStep} and slot = 'reset' and kind = 'notice'
    and starts_with(content->0->>'text', ${originOf(from)})`);
  return rows.length > 0;
}

async function informModel(tx: Transaction, { from, to, beforeStep }: Fork): Promise<void> {
  const filesAre = await filesAsOf(tx, from, beforeStep);
  const text = `${originOf(from)}The files in /workspace are ${filesAre}; processes that were started are not there.]`;
  const message: Message = { role: "user", content: [{ type: "text", text }] };
  const { rows } = await tx.execute<{ epoch: number }>(sql`select epoch from sessions where id = ${to}`);
  await insertMessage(tx, to, await takeSequences(tx, to, 1), {
    epoch: rows[0]?.epoch ?? 1,
    step: beforeStep,
    slot: "reset",
    kind: "notice",
    message,
    tokens: estimateMessage(message),
  });
}
