/** Waits that the model asked for. */
import { integer, json, pgTable, primaryKey, text } from "drizzle-orm/pg-core";
import { at, supersededBy } from "./columns.ts";

/** One row per call of `wait`. Its end is fixed when it begins: a new run of the same call does not make it longer. */
export const waits = pgTable(
  "waits",
  {
    sessionId: text("session_id").notNull(),
    epoch: integer().notNull(),
    step: integer().notNull(),
    callIndex: integer("call_index").notNull(),
    kind: text().notNull(),
    until: at("until"),
    /** The background commands or the question that it waits for. */
    target: json(),
    /** For people, in the model's words. */
    reason: text(),
    startedAt: at("started_at").notNull().defaultNow(),
    endedAt: at("ended_at"),
    /** What ended it. */
    how: text(),
    supersededEpoch: integer("superseded_epoch"),
    supersededBy: supersededBy(),
  },
  (t) => [primaryKey({ columns: [t.sessionId, t.epoch, t.step, t.callIndex] })],
);
