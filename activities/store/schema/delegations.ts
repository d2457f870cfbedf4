/** Tasks that sessions delegated to other sessions. */
import { sql } from "drizzle-orm";
import { bigint, check, index, integer, json, pgTable, primaryKey, text } from "drizzle-orm/pg-core";
import { supersededBy } from "./columns.ts";

/** One call of `delegate`: its session, the files it started from, and its result. */
export const delegations = pgTable(
  "delegations",
  {
    sessionId: text("session_id").notNull(),
    epoch: integer().notNull(),
    step: integer().notNull(),
    callIndex: integer("call_index").notNull(),
    childId: text("child_id").notNull(),
    access: text().notNull(),
    /** The save that a child with files of its own began with. */
    baseCheckpoint: bigint("base_checkpoint", { mode: "number" }),
    status: text().notNull().default("open"),
    /** Files that were merged, and those that were not, with the reason. */
    files: json(),
    /** For a superseded one: its status before. */
    supersededFrom: text("superseded_from"),
    supersededBy: supersededBy(),
  },
  (t) => [
    primaryKey({ columns: [t.sessionId, t.epoch, t.step, t.callIndex] }),
    index("delegations_child_idx").on(t.childId),
    check("delegations_access_check", sql`${t.access} in ('read','write')`),
    check("delegations_status_check", sql`${t.status} in ('open','applied','partly','failed','superseded')`),
  ],
);
