/** Which workers there are. Part of schema.ts. */
import { pgTable, serial, text } from "drizzle-orm/pg-core";
import { at } from "./columns.ts";

/**
 * One row a worker process. It holds an advisory lock by this id on a connection of its own for as long as it lives: the
 * kernel closes that connection with the process, whatever ended it.
 */
export const workers = pgTable("workers", {
  id: serial().primaryKey(),
  /** What Temporal knows it by. */
  identity: text().notNull(),
  namespace: text().notNull(),
  startedAt: at("started_at").notNull().defaultNow(),
  /** It said so itself, or another found it gone and gave its work to others. */
  endedAt: at("ended_at"),
});
