/** What a reset leaves behind: rows of the abandoned line are marked, what it had taken out of view comes back. */
import { sql, type SQL } from "drizzle-orm";
import { estimateMessage } from "../contract/tokens.ts";
import type { Message } from "../contract/message.ts";
import type { Queryable } from "./db.ts";
import { supersedeDelegations } from "./delegations.ts";
import { filesAsOf } from "./saved-bytes.ts";
import { insertMessage, takeSequences } from "./transcript.ts";

/** A run's position at its first write: later rows belong to another line. */
export interface Standpoint {
  readonly step: number;
  /**
   * `model`: this step's messages are still to come; `tools`: its answer is stored, its results are not; `resume`: a new
   * run that continues from everything stored, so that only our own notes for a step that never ran are dropped.
   */
  readonly phase: "model" | "tools" | "resume";
  /**
   * The last compaction round that stays in force; `earlier`: only rounds of earlier steps do; if it is not known, those of
   * this step do as well.
   */
  readonly round?: number | "earlier";
}

/** After a reset to this point, the model gets a notice before the step that follows. */
const resetNotice = (filesAre: string) =>
  `[The conversation went back to this point. The files in /workspace are ${filesAre}; processes that were started are gone.]`;

/**
 * Marks the rows of another line that a run finds as superseded, in the epoch that begins with the run. Rounds and prunes
 * from there on are undone, and people's messages that were delivered there are queued again.
 * @returns false if there were no such rows, so that no epoch begins
 */
export async function supersede(tx: Queryable, id: string, epoch: number, at: Standpoint): Promise<boolean> {
  const mark = async (table: SQL, where: SQL) =>
    (
      await tx.execute(sql`update ${table} set superseded_epoch = ${epoch}
        where session_id = ${id} and superseded_epoch is null and ${where}`)
    ).rowCount ?? 0;
  if (at.phase === "resume") {
    await mark(sql`stored_messages`, sql`step >= ${at.step} and kind in ('nudge', 'wrap-up')`);
    return false;
  }
  const later =
    at.phase === "model"
      ? sql`step >= ${at.step}`
      : sql`(step > ${at.step} or (step = ${at.step} and slot like 'tool:%'))`;
  const messages = await mark(sql`stored_messages`, sql`slot not like 'summary:%' and ${later}`);
  await tx.execute(sql`update guidance set delivered_sequence = null where session_id = ${id}
    and delivered_sequence in (select sequence from stored_messages where session_id = ${id} and superseded_epoch = ${epoch})`);
  const rounds = await supersedeRounds(tx, id, epoch, at);
  // Pruning runs after a step's tools, so this step's pruning belongs to the other line, too.
  await tx.execute(
    sql`update stored_messages set pruned_step = null where session_id = ${id} and pruned_step >= ${at.step}`,
  );
  const saved = await mark(sql`checkpoints`, sql`step >= ${at.step}`);
  const calls = await supersedeCalls(tx, id, epoch, at);
  const delegated = await supersedeDelegations(tx, id, epoch, { step: at.step, phase: at.phase });
  await mark(sql`egress_rules`, at.phase === "model" ? sql`step >= ${at.step}` : sql`step > ${at.step}`);
  const settled = await settledQuestions(tx, id, at.step);
  if (messages + rounds + saved + calls + settled + delegated === 0) return false;
  await supersedeQuestions(tx, id, epoch, at);
  await mark(sql`permission_grants`, sql`step >= ${at.step}`);
  if (at.phase === "model") await informModel(tx, id, epoch, at.step);
  return true;
}

/** By round number if it is known: a round may have been made at this very step, before or after this point. */
function laterRounds({ round, step }: Standpoint): SQL {
  if (round === "earlier") return sql`step >= ${step}`;
  if (round === undefined) return sql`step > ${step}`;
  return sql`case when status = 'failed' then step > ${step} else round > ${round} end`;
}

async function supersedeRounds(tx: Queryable, id: string, epoch: number, at: Standpoint): Promise<number> {
  const later = laterRounds(at);
  const gone = await tx.execute(sql`update compaction_events set superseded_epoch = ${epoch}
    where session_id = ${id} and superseded_epoch is null and ${later} returning round, status`);
  for (const { round, status } of gone.rows as { round: number; status: string }[]) {
    if (status === "failed") continue;
    await tx.execute(sql`update stored_messages set superseded_epoch = ${epoch}
      where session_id = ${id} and superseded_epoch is null and slot = ${`summary:${round}`}`);
  }
  return gone.rowCount ?? 0;
}

/** A call that has not begun, or whose MCP server waits for a person; the latter continues from there. */
const STAYS = sql`(status = 'pending' or (status = 'running' and coalesce(mcp_state, '') like '{"asked"%'))`;

/**
 * Calls of the standpoint's own step are stored again as new ones, since their answers are superseded.
 * @returns how many belonged to the other line: a call that began and has no result may be the only trace of that line
 */
async function supersedeCalls(tx: Queryable, id: string, epoch: number, at: Standpoint): Promise<number> {
  if (at.phase === "tools") {
    await tx.execute(sql`with again as (
        select step, index, call_id, name, mcp_server, read_only, row_number() over (order by index) as place, count(*) over () as total
        from tool_calls where session_id = ${id} and superseded_epoch is null and step = ${at.step} and not ${STAYS}
      ), c as (
        update cursors set message_sequence = message_sequence + (select count(*) from again) where session_id = ${id} returning message_sequence
      )
      insert into tool_calls (session_id, epoch, step, index, call_id, name, sequence, mcp_server, read_only)
      select ${id}, ${epoch}, step, index, call_id, name, c.message_sequence - total + place, mcp_server, read_only from again, c`);
  }
  const { rowCount } = await tx.execute(sql`update tool_calls set superseded_epoch = ${epoch}
    where session_id = ${id} and superseded_epoch is null and epoch < ${epoch}
    and (step > ${at.step} or (step = ${at.step} and (${at.phase === "model"} or not ${STAYS})))`);
  return rowCount ?? 0;
}

/** Answered questions of the step that no result reflects yet: those of calls that were allowed and had not run. */
async function settledQuestions(tx: Queryable, id: string, step: number): Promise<number> {
  const { rowCount } = await tx.execute(sql`select 1 from questions
    where session_id = ${id} and step >= ${step} and status not in ('open', 'superseded') limit 1`);
  return rowCount ?? 0;
}

/** Answers do not apply to another line, whose calls ask again. A run that waits for answers keeps its questions open. */
async function supersedeQuestions(tx: Queryable, id: string, epoch: number, at: Standpoint): Promise<void> {
  if (at.phase === "tools") {
    await tx.execute(sql`insert into questions (session_id, epoch, id, step, call_index, kind, text, options, default_text,
        input_hash, asked_at, expires_at)
      select distinct on (id) session_id, ${epoch}, id, step, call_index, kind, text, options, default_text, input_hash, asked_at, expires_at
      from questions where session_id = ${id} and step = ${at.step} and status <> 'superseded' order by id, epoch desc`);
  }
  await tx.execute(sql`update questions set status = 'superseded'
    where session_id = ${id} and epoch < ${epoch} and step >= ${at.step} and status <> 'superseded'`);
}

async function informModel(tx: Queryable, id: string, epoch: number, step: number): Promise<void> {
  const text = resetNotice(await filesAsOf(tx, id, step));
  const message: Message = { role: "user", content: [{ type: "text", text }] };
  await insertMessage(tx, id, await takeSequences(tx, id, 1), {
    epoch,
    step,
    slot: "reset",
    kind: "notice",
    message,
    tokens: estimateMessage(message),
  });
}
