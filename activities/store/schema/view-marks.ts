/** What left or returned to a session's view, apart from what its rounds replaced. */
import { bigserial, index, integer, pgTable, text } from "drizzle-orm/pg-core";
import { at, multirange, supersededBy } from "./columns.ts";

/**
 * One row per act. `pruned_step` of the messages, and the state of the rounds, follow from the marks of the live line: after a
 * reset they are set again (store/view-marks.ts).
 */
export const viewMarks = pgTable(
  "view_marks",
  {
    id: bigserial({ mode: "number" }).primaryKey(),
    sessionId: text("session_id").notNull(),
    epoch: integer().notNull(),
    step: integer().notNull(),
    /** `prune`: results were hidden; `undo`: a round was undone. */
    kind: text().notNull(),
    /** The round that hid the results, or that was undone; null for a prune. */
    round: integer(),
    roundEpoch: integer("round_epoch"),
    /** The hidden messages; of an undone round, those that it had replaced. */
    sequences: multirange().notNull(),
    /** The request that a person undid the round with. */
    requestId: text("request_id"),
    supersededEpoch: integer("superseded_epoch"),
    supersededBy: supersededBy(),
    createdAt: at("created_at").notNull().defaultNow(),
  },
  (t) => [index("view_marks_session_idx").on(t.sessionId)],
);
