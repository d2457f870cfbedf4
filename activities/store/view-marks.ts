/** What hides messages from a view, and what undoes a round: one row per act, from which the marks of the messages follow. */
import { sql } from "drizzle-orm";
import type { Queryable } from "./db.ts";
import { viewMarks } from "./schema/index.ts";

export type NewMark = typeof viewMarks.$inferInsert;

/** As Postgres reads a set: `{[1,4],[7,7]}`. */
export function multirangeOf(sequences: readonly number[]): string {
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

/** Sets what follows from the live marks, after some of them were superseded or brought back. */
export async function applyMarks(tx: Queryable, id: string): Promise<void> {
  const undo = (alias: string, of: string) =>
    sql.raw(
      `${alias}.session_id = ${of}.session_id and ${alias}.kind = 'undo' and ${alias}.round = ${of}.round`,
    );
  await tx.execute(sql`update compaction_events e set status = 'compacted', reason = null, replaced = m.sequences
    from view_marks m where e.session_id = ${id} and e.status = 'undone' and e.superseded_epoch is null
    and ${undo("m", "e")} and m.round_epoch = e.epoch
    and not exists (select 1 from view_marks o
      where ${undo("o", "e")} and o.round_epoch = e.epoch and o.superseded_epoch is null)`);
  await tx.execute(sql`update compaction_events e set status = 'undone', reason = 'undone by request ' || m.request_id,
      replaced = (select int8multirange(int8range(s.sequence, s.sequence, '[]')) from stored_messages s
        where s.session_id = e.session_id and s.superseded_epoch is null and s.slot = 'summary:' || e.round)
    from view_marks m where e.session_id = ${id} and e.status = 'compacted' and e.superseded_epoch is null
    and ${undo("m", "e")} and m.round_epoch = e.epoch and m.superseded_epoch is null`);
  await tx.execute(sql`with hidden as (
      select s.id, min(m.step) as step from stored_messages s join view_marks m
        on m.session_id = s.session_id and m.kind = 'prune' and m.superseded_epoch is null and s.sequence <@ m.sequences
      where s.session_id = ${id} and s.superseded_epoch is null and (m.round is null or not exists (
        select 1 from view_marks u
        where ${undo("u", "m")} and u.round_epoch = m.round_epoch and u.superseded_epoch is null))
      group by s.id
    )
    update stored_messages s set pruned_step = hidden.step
    from stored_messages o left join hidden on hidden.id = o.id
    where o.id = s.id and s.session_id = ${id} and s.superseded_epoch is null and s.pruned_step is distinct from hidden.step`);
}
