/** The worker processes. */
import { sql } from "drizzle-orm";
import { pgTable, serial, text } from "drizzle-orm/pg-core";
import { at } from "./columns.ts";

/**
 * One row per worker process. For as long as it lives, it holds an advisory lock by this id on a connection of its own: the
 * kernel closes that connection with the process, whatever ended it.
 */
export const workers = pgTable("workers", {
  id: serial().primaryKey(),
  /** Its identity in Temporal. */
  identity: text().notNull(),
  namespace: text().notNull(),
  startedAt: at("started_at").notNull().defaultNow(),
  /** Set by the worker itself, or by another that found it lost and gave its work to others. */
  endedAt: at("ended_at"),
  /** Those whose calls it runs, as of its newest check for lost workers: they are given to others first. */
  sessions: text()
    .array()
    .notNull()
    .default(sql`'{}'`),
});
