/** What a reset leaves behind: rows of the abandoned line are marked, what it had taken out of view comes back. */
import {
  and,
  asc,
  eq,
  gt,
  gte,
  inArray,
  like,
  lt,
  ne,
  not,
  notInArray,
  notLike,
  or,
  sql,
  type SQL,
} from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";
import { estimateMessage } from "../contract/request-size.ts";
import type { Message, MessageKind } from "../contract/message.ts";
import type { Queryable } from "./db.ts";
import { supersedeDelegations } from "./delegations.ts";
import { settleDelivered, type Standpoint } from "./lines.ts";
import { isIn, isLive, supersededAlso } from "./live-line.ts";
import {
  checkpoints,
  compactionEvents,
  egressRules,
  permissionGrants,
  questions,
  storedMessages,
  toolCalls,
  viewMarks,
  waits,
} from "./schema/index.ts";
import { equalsAny, assigned, copyRows, insertFrom } from "./statements.ts";
import { addNotice } from "./sandboxes.ts";
import { filesAsOf } from "./checkpoints.ts";
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
  const mark = async (table: Marked, where: SQL | undefined, by = epoch) =>
    (
      await tx.execute(sql`update ${table}
        set ${assigned([table.supersededEpoch, epoch], [table.supersededBy, supersededAlso(table, by)])}
        where ${isLive(table, id)} and ${where}`)
    ).rowCount ?? 0;
  const { slot, step: ofStep, kind } = storedMessages;
  if (at.phase === "resume") {
    const isNote = inArray(kind, ["warning", "wrap-up"] satisfies MessageKind[]);
    await mark(storedMessages, and(gte(ofStep, at.step), isNote), NO_LINE);
    return false;
  }
  const later = ({ step }: Pick<Marked, "step">) =>
    at.phase === "model" ? gte(step, at.step) : gt(step, at.step);
  const openResult = and(eq(ofStep, at.step), like(slot, "tool:%"), isOpen(at, sql`substr(${slot}, 6)`));
  const laterResults = at.phase === "model" ? later(storedMessages) : or(gt(ofStep, at.step), openResult);
  const marked = [
    await mark(storedMessages, and(notLike(slot, "summary:%"), laterResults)),
    await supersedeRounds(tx, id, epoch, at),
    await mark(checkpoints, gte(checkpoints.step, at.step)),
    await supersedeCalls(tx, id, epoch, at),
    await supersedeDelegations(tx, id, epoch, at),
    await settledQuestions(tx, id, at),
  ];
  await mark(waits, gte(waits.step, at.step));
  await mark(egressRules, later(egressRules));
  await mark(viewMarks, laterMarks(at));
  const isBack = at.fork?.isOther === true || marked.some((count) => count > 0);
  if (isBack) {
    await supersedeQuestions(tx, id, epoch, at);
    // What was allowed for the rest of the session by an answer that counts stays allowed.
    const { step } = permissionGrants;
    const hasSettled = (at.fork?.settled.length ?? 0) > 0;
    await mark(permissionGrants, hasSettled ? later(permissionGrants) : gte(step, at.step));
  }
  await settleDelivered(tx, id);
  await applyMarks(tx, id);
  if (isBack) await informModel(tx, id, epoch, at);
  return isBack;
}

type Marked =
  | typeof storedMessages
  | typeof checkpoints
  | typeof egressRules
  | typeof viewMarks
  | typeof permissionGrants
  | typeof waits;

/** Instead of an epoch, for rows that no line has any more. */
const NO_LINE = 0;

/** Whether a call of the standpoint's step has no result there. */
function isOpen({ fork }: Standpoint, index: SQL | PgColumn): SQL {
  return fork?.open === undefined ? sql`true` : isIn(sql`(${index})::int`, fork.open);
}

/** By round number if it is known: a round may have been made at this very step, before or after this point. */
function laterRounds({ round, step, fork }: Standpoint): SQL | undefined {
  const rounds = compactionEvents;
  if (round === "earlier")
    return and(gte(rounds.step, step), fork && sql`${rounds.createdAt} >= ${fork.since}`);
  if (round === undefined) return gt(rounds.step, step);
  return sql`case when ${rounds.status} = 'failed' then ${rounds.step} > ${step} else ${rounds.round} > ${round} end`;
}

/** Without a fork, pruning of the step itself counts as later, since it runs after the step's tools. */
function laterMarks({ step, round, fork }: Standpoint): SQL {
  const marks = viewMarks;
  if (fork === undefined) return gte(marks.step, step);
  const rounds = typeof round === "number" ? gt(marks.round, round) : gte(marks.step, step);
  return sql`${marks.createdAt} >= ${fork.since} and case
    when ${marks.kind} = 'undo' then not ${equalsAny(marks.requestId, fork.undone)}
    when ${marks.round} is not null then ${rounds}
    else ${marks.step} > ${fork.pruned ?? 0} end`;
}

async function supersedeRounds(tx: Queryable, id: string, epoch: number, at: Standpoint): Promise<number> {
  const rows = await tx
    .update(compactionEvents)
    .set({ supersededEpoch: epoch, supersededBy: supersededAlso(compactionEvents, epoch) })
    .where(and(isLive(compactionEvents, id), laterRounds(at)))
    .returning({ round: compactionEvents.round, status: compactionEvents.status });
  for (const { round, status } of rows) {
    if (status === "failed") continue;
    await tx
      .update(storedMessages)
      .set({ supersededEpoch: epoch, supersededBy: supersededAlso(storedMessages, epoch) })
      .where(and(isLive(storedMessages, id), eq(storedMessages.slot, `summary:${round}`)));
  }
  return rows.length;
}

/** A call that has not begun, or whose MCP server waits for a person; the latter continues from there. */
const STAYS = sql`(${toolCalls.status} = 'pending'
  or (${toolCalls.status} = 'running' and coalesce(${toolCalls.mcpState}, '') like '{"asked"%'))`;

/**
 * Calls of the standpoint's own step are stored again as new ones, since their answers are superseded; those that have their
 * results there keep them.
 * @returns how many belonged to the other line: a call that began and has no result may be the only trace of that line
 */
async function supersedeCalls(tx: Queryable, id: string, epoch: number, at: Standpoint): Promise<number> {
  const isBegun = sql`(not ${STAYS} and ${isOpen(at, toolCalls.index)})`;
  if (at.phase === "tools") {
    const { step, index, callId, name, mcpServer } = toolCalls;
    const isAgain = and(isLive(toolCalls, id), eq(step, at.step), isBegun);
    const count = await tx.$count(toolCalls, isAgain);
    if (count > 0) {
      const first = await takeSequences(tx, id, count);
      const sequence = sql`${first}::bigint + row_number() over (order by ${index}) - 1`;
      const values = { sessionId: id, epoch, step, index, callId, name, sequence, mcpServer };
      await tx.execute(insertFrom(toolCalls, values, sql`from ${toolCalls} where ${isAgain}`));
    }
  }
  const { step } = toolCalls;
  const { rowCount } = await tx
    .update(toolCalls)
    .set({ supersededEpoch: epoch, supersededBy: supersededAlso(toolCalls, epoch) })
    .where(
      and(
        isLive(toolCalls, id),
        lt(toolCalls.epoch, epoch),
        or(gt(step, at.step), and(eq(step, at.step), at.phase === "model" ? undefined : isBegun)),
      ),
    );
  return rowCount ?? 0;
}

const isSettled = ({ fork }: Standpoint) => equalsAny(questions.id, fork?.settled ?? []);

/** Answered questions of the step that no result reflects yet: those of calls that were allowed and had not run. */
async function settledQuestions(tx: Queryable, id: string, at: Standpoint): Promise<number> {
  const { step, status } = questions;
  const rows = await tx
    .select({ id: questions.id })
    .from(questions)
    .where(
      and(
        eq(questions.sessionId, id),
        notInArray(status, ["open", "superseded"]),
        or(gt(step, at.step), and(eq(step, at.step), not(isSettled(at)))),
      ),
    )
    .limit(1);
  return rows.length;
}

/** Later answers do not apply to another line, whose calls ask again. A run that waits for answers keeps its questions open. */
async function supersedeQuestions(tx: Queryable, id: string, epoch: number, at: Standpoint): Promise<void> {
  if (at.phase === "tools") {
    const settled = isSettled(at);
    const ifSettled = (column: PgColumn) => sql`case when ${settled} then ${column} end`;
    await tx.execute(
      copyRows(
        questions,
        {
          epoch,
          status: sql`case when ${settled} then ${questions.status} else 'open' end`,
          answer: ifSettled(questions.answer),
          answeredBy: ifSettled(questions.answeredBy),
          answeredAt: ifSettled(questions.answeredAt),
          supersededFrom: sql`null`,
          supersededBy: sql`null`,
        },
        sql`where ${questions.sessionId} = ${id} and ${questions.step} = ${at.step} and ${questions.status} <> 'superseded'
          order by ${questions.id}, ${questions.epoch} desc`,
        sql`distinct on (${questions.id})`,
      ),
    );
  }
  await tx
    .update(questions)
    .set({
      supersededFrom: sql`${questions.status}`,
      status: "superseded",
      supersededBy: supersededAlso(questions, epoch),
    })
    .where(
      and(
        eq(questions.sessionId, id),
        lt(questions.epoch, epoch),
        gte(questions.step, at.step),
        ne(questions.status, "superseded"),
      ),
    );
}

async function informModel(tx: Queryable, id: string, epoch: number, at: Standpoint): Promise<void> {
  const { step, phase } = at;
  if (phase === "tools") {
    const rows = await tx
      .select({ name: toolCalls.name })
      .from(toolCalls)
      .where(
        and(
          isLive(toolCalls, id),
          eq(toolCalls.step, step),
          ne(toolCalls.status, "pending"),
          not(isOpen(at, toolCalls.index)),
        ),
      )
      .orderBy(asc(toolCalls.index));
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
