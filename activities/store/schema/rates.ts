/** What is asked of models, held to a limit over all workers. Part of schema.ts. */
import { bigint, bigserial, index, integer, pgTable, primaryKey, text } from "drizzle-orm/pg-core";
import { at } from "./columns.ts";

/** One row a model and minute of the database's clock: what was asked for, and what it took, or may yet take. */
export const rateWindows = pgTable(
  "rate_windows",
  {
    /** The model and who has its key, never the key. */
    key: text().notNull(),
    /** Since 1970. */
    minute: bigint({ mode: "number" }).notNull(),
    requests: integer().notNull(),
    tokens: bigint({ mode: "number" }).notNull(),
  },
  (t) => [primaryKey({ columns: [t.key, t.minute] })],
);

/** One row a session whose request is open at a model with limits. A worker that died no longer renews it. */
export const openRequests = pgTable(
  "open_requests",
  {
    sessionId: text("session_id").primaryKey(),
    /** Another with each request. */
    id: bigserial({ mode: "number" }).notNull(),
    key: text().notNull(),
    minute: bigint({ mode: "number" }).notNull(),
    /** Set aside in that minute's row. */
    tokens: bigint({ mode: "number" }).notNull(),
    expiresAt: at("expires_at").notNull(),
  },
  (t) => [index("open_requests_key_idx").on(t.key)],
);
