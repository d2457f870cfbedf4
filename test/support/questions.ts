/** A session's questions, as tests read them. */
import { findSessionRow } from "../../activities/store/reading.ts";
import type { QuestionRow } from "../../activities/store/questions.ts";
import type { Store } from "../../activities/store/db.ts";
import { eventually } from "./eventually.ts";

type Session = { readonly id: string };

/** All questions of a session by epoch and id. */
export async function questionRows({ pool }: Store, { id }: Session): Promise<QuestionRow[]> {
  const { rows } = await pool.query(
    `select id, kind, status, answer, answered_by as "answeredBy" from questions where session_id = $1 order by epoch, id`,
    [id],
  );
  return rows as QuestionRow[];
}

export const untilWaiting = ({ db }: Store, { id }: Session, timeoutMs?: number) =>
  eventually(
    "the session waits",
    async () => (await findSessionRow(db, id))?.status === "waiting",
    timeoutMs,
  );
