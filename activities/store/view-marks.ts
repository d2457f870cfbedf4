/** What hides messages from a view, and what undoes a round: one row per act, from which the marks of the messages follow. */
import { and, eq, isNull, notExists, or, sql } from "drizzle-orm";
import { alias, type PgColumn } from "drizzle-orm/pg-core";
import type { Queryable } from "./db.ts";
import { isLive } from "./live-line.ts";
import { compactionEvents, storedMessages, viewMarks } from "./schema/index.ts";
import { ANY, part } from "./statements.ts";

export type NewMark = typeof viewMarks.$inferInsert;

/** As Postgres reads a set: `{[1,4],[7,7]}`. */
export function toMultirange(sequences: readonly number[]): string {
  const ranges: { readonly first: number; last: number }[] = [];
  for (const sequence of sequences.toSorted((a, b) => a - b)) {
    const range = ranges.at(-1);
    if (range !== undefined && sequence <= range.last + 1) range.last = sequence;
    else ranges.push({ first: sequence, last: sequence });
  }
  return `{${ranges.map(({ first, last }) => `[${first},${last}]`).join(",")}}`;
}

export async function addMark(tx: Queryable, mark: NewMark): Promise<void> {
  await tx.insert(viewMarks).values(mark);
}

const [undoing, stillUndoing] = [alias(viewMarks, "undoing"), alias(viewMarks, "still_undoing")];

/** Whether a mark undoes that round. */
const undoes = (
  mark: typeof undoing | typeof stillUndoing,
  of: { readonly [name in "sessionId" | "round" | "epoch"]: PgColumn },
) =>
  and(
    eq(mark.sessionId, of.sessionId),
    eq(mark.kind, "undo"),
    eq(mark.round, of.round),
    eq(mark.roundEpoch, of.epoch),
  );

/** Sets what follows from the live marks, after some of them were superseded or brought back. */
export async function applyMarks(tx: Queryable, id: string): Promise<void> {
  const rounds = compactionEvents;
  const remains = part
    .select(ANY)
    .from(stillUndoing)
    .where(and(undoes(stillUndoing, rounds), isNull(stillUndoing.supersededEpoch)));
  await tx
    .update(rounds)
    .set({ status: "compacted", reason: null, replaced: sql`${undoing.sequences}` })
    .from(undoing)
    .where(and(isLive(rounds, id), eq(rounds.status, "undone"), undoes(undoing, rounds), notExists(remains)));
  const summary = part
    .select({
      place: sql`int8multirange(int8range(${storedMessages.sequence}, ${storedMessages.sequence}, '[]'))`,
    })
    .from(storedMessages)
    .where(
      and(
        isLive(storedMessages, sql`${rounds.sessionId}`),
        eq(storedMessages.slot, sql`'summary:' || ${rounds.round}`),
      ),
    );
  await tx
    .update(rounds)
    .set({
      status: "undone",
      reason: sql`'undone by request ' || ${undoing.requestId}`,
      replaced: sql`${summary}`,
    })
    .from(undoing)
    .where(
      and(
        isLive(rounds, id),
        eq(rounds.status, "compacted"),
        undoes(undoing, rounds),
        isNull(undoing.supersededEpoch),
      ),
    );
  await setPruned(tx, id);
}

async function setPruned(tx: Queryable, id: string): Promise<void> {
  const isUndone = part
    .select(ANY)
    .from(undoing)
    .where(
      and(
        undoes(undoing, {
          sessionId: viewMarks.sessionId,
          round: viewMarks.round,
          epoch: viewMarks.roundEpoch,
        }),
        isNull(undoing.supersededEpoch),
      ),
    );
  const hidden = tx.$with("hidden").as(
    tx
      .select({ id: storedMessages.id, step: sql<number>`min(${viewMarks.step})`.as("hidden_step") })
      .from(storedMessages)
      .innerJoin(
        viewMarks,
        and(
          isLive(viewMarks, sql`${storedMessages.sessionId}`),
          eq(viewMarks.kind, "prune"),
          sql`${storedMessages.sequence} <@ ${viewMarks.sequences}`,
        ),
      )
      .where(and(isLive(storedMessages, id), or(isNull(viewMarks.round), notExists(isUndone))))
      .groupBy(storedMessages.id),
  );
  const row = alias(storedMessages, "row");
  await tx
    .with(hidden)
    .update(storedMessages)
    .set({ prunedStep: sql`${hidden.step}` })
    .from(row)
    .leftJoin(hidden, eq(hidden.id, row.id))
    .where(
      and(
        eq(row.id, storedMessages.id),
        isLive(storedMessages, id),
        sql`${storedMessages.prunedStep} is distinct from ${hidden.step}`,
      ),
    );
}
