/** What a reset leaves behind: rows of the abandoned line are marked, what it had taken out of view comes back. */
import { sql, type SQL } from "drizzle-orm";
import { estimateMessage } from "../contract/request-size.ts";
import type { Message } from "../contract/message.ts";
import type { Queryable } from "./db.ts";
import { supersedeDelegations } from "./delegations.ts";
import { settleDelivered } from "./lines.ts";
import { addNotice } from "./sandboxes.ts";
import type { Standpoint } from "./standpoint.ts";
import { filesAsOf } from "./saved-bytes.ts";
import { insertMessage, takeSequences } from "./transcript.ts";
import { applyMarks } from "./view-marks.ts";

/** After a reset to this point, the model gets a notice before the step that follows. */
const resetNotice = (filesAre: string) =>
  `[The conversation went back to this point. The files in /workspace are ${filesAre}; processes that were started are gone.]`;

/** The same within a step, some of whose calls keep their results. */
const withinStepNotice = (step: number, names: readonly string[]) =>
  `[The conversation went back into step ${step}, after ${names.join(", ")}. The files in /workspace are as they were before that step; processes that were started are gone. Check what you need of what that changed.]`;

/**
 * Marks the rows of another line that a run finds as superseded, in the epoch that begins with the run. Rounds and prunes
 * from there on are undone, and people's messages that were delivered there are queued again.
 * @returns false if there were no such rows, so that no epoch begins
 */
export async function supersede(tx: Queryable, id: string, epoch: number, at: Standpoint): Promise<boolean> {
  const mark = async (table: string, where: SQL, by = epoch) =>
    (
      await tx.execute(sql`update ${sql.identifier(table)} set superseded_epoch = ${epoch}, superseded_by = array_append(superseded_by, ${by})
        where session_id = ${id} and superseded_epoch is null and ${where}`)
    ).rowCount ?? 0;
  if (at.phase === "resume") {
    await mark("stored_messages", sql`step >= ${at.step} and kind in ('nudge', 'wrap-up')`, NO_LINE);
    return false;
  }
  const later = at.phase === "model" ? sql`step >= ${at.step}` : sql`step > ${at.step}`;
  const laterResults =
    at.phase === "model"
      ? later
      : sql`(step > ${at.step} or (step = ${at.step} and slot like 'tool:%' and ${isOpen(at, sql`substr(slot, 6)`)}))`;
  const marked = [
    await mark("stored_messages", sql`slot not like 'summary:%' and ${laterResults}`),
    await supersedeRounds(tx, id, epoch, at),
    await mark("checkpoints", sql`step >= ${at.step}`),
    await supersedeCalls(tx, id, epoch, at),
    await supersedeDelegations(tx, id, epoch, at),
    await settledQuestions(tx, id, at),
  ];
  await mark("egress_rules", later);
  await mark("view_marks", laterMarks(at));
  const isBack = at.fork?.isOther === true || marked.some((count) => count > 0);
  if (isBack) {
    await supersedeQuestions(tx, id, epoch, at);
    // What was allowed for the rest of the session by an answer that counts stays allowed.
    await mark("permission_grants", (at.fork?.settled.length ?? 0) > 0 ? later : sql`step >= ${at.step}`);
  }
  await settleDelivered(tx, id);
  await applyMarks(tx, id);
  if (isBack) await informModel(tx, id, epoch, at);
  return isBack;
}

/** Instead of an epoch, for rows that no line has any more. */
const NO_LINE = 0;

/** Whether a call of the standpoint's step has no result there. */
function isOpen({ fork }: Standpoint, index: SQL): SQL {
  return fork?.open === undefined
    ? sql`true`
    : sql`(${index})::int = any(${sql.param([...fork.open])}::int[])`;
}

/** By round number if it is known: a round may have been made at this very step, before or after this point. */
function laterRounds({ round, step, fork }: Standpoint): SQL {
  if (round === "earlier")
    return fork ? sql`step >= ${step} and created_at >= ${fork.since}` : sql`step >= ${step}`;
  if (round === undefined) return sql`step > ${step}`;
  return sql`case when status = 'failed' then step > ${step} else round > ${round} end`;
}

/** Without a fork, pruning of the step itself counts as later, since it runs after the step's tools. */
function laterMarks({ step, round, fork }: Standpoint): SQL {
  if (fork === undefined) return sql`step >= ${step}`;
  const rounds = typeof round === "number" ? sql`round > ${round}` : sql`step >= ${step}`;
  return sql`created_at >= ${fork.since} and case
    when kind = 'undo' then request_id <> all(${sql.param([...fork.undone])}::text[])
    when round is not null then ${rounds}
    else step > ${fork.pruned ?? 0} end`;
}

async function supersedeRounds(tx: Queryable, id: string, epoch: number, at: Standpoint): Promise<number> {
  const gone =
    await tx.execute(sql`update compaction_events set superseded_epoch = ${epoch}, superseded_by = array_append(superseded_by, ${epoch})
    where session_id = ${id} and superseded_epoch is null and ${laterRounds(at)} returning round, status`);
  for (const { round, status } of gone.rows as { round: number; status: string }[]) {
    if (status === "failed") continue;
    await tx.execute(sql`update stored_messages set superseded_epoch = ${epoch}, superseded_by = array_append(superseded_by, ${epoch})
      where session_id = ${id} and superseded_epoch is null and slot = ${`summary:${round}`}`);
  }
  return gone.rowCount ?? 0;
}

/** A call that has not begun, or whose MCP server waits for a person; the latter continues from there. */
const STAYS = sql`(status = 'pending' or (status = 'running' and coalesce(mcp_state, '') like '{"asked"%'))`;

/**
 * Calls of the standpoint's own step are stored again as new ones, since their answers are superseded; those that have their
 * results there keep them.
 * @returns how many belonged to the other line: a call that began and has no result may be the only trace of that line
 */
async function supersedeCalls(tx: Queryable, id: string, epoch: number, at: Standpoint): Promise<number> {
  const begun = sql`(not ${STAYS} and ${isOpen(at, sql`index`)})`;
  if (at.phase === "tools") {
    await tx.execute(sql`with again as (
        select step, index, call_id, name, mcp_server, row_number() over (order by index) as place, count(*) over () as total
        from tool_calls where session_id = ${id} and superseded_epoch is null and step = ${at.step} and ${begun}
      ), c as (
        update cursors set message_sequence = message_sequence + (select count(*) from again) where session_id = ${id} returning message_sequence
      )
      insert into tool_calls (session_id, epoch, step, index, call_id, name, sequence, mcp_server)
      select ${id}, ${epoch}, step, index, call_id, name, c.message_sequence - total + place, mcp_server from again, c`);
  }
  const { rowCount } =
    await tx.execute(sql`update tool_calls set superseded_epoch = ${epoch}, superseded_by = array_append(superseded_by, ${epoch})
    where session_id = ${id} and superseded_epoch is null and epoch < ${epoch}
    and (step > ${at.step} or (step = ${at.step} and (${at.phase === "model"} or ${begun})))`);
  return rowCount ?? 0;
}

const isSettled = ({ fork }: Standpoint) => sql`id = any(${sql.param([...(fork?.settled ?? [])])}::text[])`;

/** Answered questions of the step that no result reflects yet: those of calls that were allowed and had not run. */
async function settledQuestions(tx: Queryable, id: string, at: Standpoint): Promise<number> {
  const { rowCount } = await tx.execute(sql`select 1 from questions
    where session_id = ${id} and status not in ('open', 'superseded')
    and (step > ${at.step} or (step = ${at.step} and not ${isSettled(at)})) limit 1`);
  return rowCount ?? 0;
}

/** Later answers do not apply to another line, whose calls ask again. A run that waits for answers keeps its questions open. */
async function supersedeQuestions(tx: Queryable, id: string, epoch: number, at: Standpoint): Promise<void> {
  if (at.phase === "tools") {
    const settled = isSettled(at);
    await tx.execute(sql`insert into questions (session_id, epoch, id, step, call_index, kind, text, options, default_text,
        input_hash, asked_at, expires_at, status, answer, answered_by, answered_at)
      select distinct on (id) session_id, ${epoch}, id, step, call_index, kind, text, options, default_text, input_hash, asked_at, expires_at,
        case when ${settled} then status else 'open' end, case when ${settled} then answer end,
        case when ${settled} then answered_by end, case when ${settled} then answered_at end
      from questions where session_id = ${id} and step = ${at.step} and status <> 'superseded' order by id, epoch desc`);
  }
  await tx.execute(sql`update questions set superseded_from = status, status = 'superseded', superseded_by = array_append(superseded_by, ${epoch})
    where session_id = ${id} and epoch < ${epoch} and step >= ${at.step} and status <> 'superseded'`);
}

async function informModel(tx: Queryable, id: string, epoch: number, at: Standpoint): Promise<void> {
  const { step, phase } = at;
  if (phase === "tools") {
    const { rows } = await tx.execute<{ name: string }>(sql`select name from tool_calls
      where session_id = ${id} and superseded_epoch is null and step = ${step} and status <> 'pending'
      and not ${isOpen(at, sql`index`)} order by index`);
    if (rows.length > 0)
      await addNotice(
        tx,
        id,
        withinStepNotice(
          step,
          rows.map(({ name }) => name),
        ),
      );
    return;
  }
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
