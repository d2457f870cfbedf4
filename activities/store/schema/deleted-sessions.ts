/** The record that is kept of a deleted session. */
import { pgTable, text } from "drizzle-orm/pg-core";
import { at } from "./columns.ts";

export const deletedSessions = pgTable("deleted_sessions", {
  id: text().primaryKey(),
  owner: text(),
  deletedAt: at("deleted_at").notNull().defaultNow(),
  deletedBy: text("deleted_by"),
});
