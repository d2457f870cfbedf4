/** People who connect to the database with a role of their own. */
import { pgTable, text } from "drizzle-orm/pg-core";

/** Postgres roles that each see one person's sessions. */
export const clientRoles = pgTable("client_roles", {
  role: text().primaryKey(),
  owner: text().notNull(),
});
