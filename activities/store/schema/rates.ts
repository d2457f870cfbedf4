/** Requests to models, limited over all workers. */
import { bigint, bigserial, index, integer, pgTable, primaryKey, text } from "drizzle-orm/pg-core";
import { at } from "./columns.ts";

/** One row per model and minute of the database's clock: the requests, and the tokens that they used or may yet use. */
export const rateWindows = pgTable(
  "rate_windows",
  {
    /** The model and the holder of its key, never the key. */
    key: text().notNull(),
    /** Minutes since 1970. */
    minute: bigint({ mode: "number" }).notNull(),
    requests: integer().notNull(),
    tokens: bigint({ mode: "number" }).notNull(),
  },
  (t) => [primaryKey({ columns: [t.key, t.minute] })],
);

/** One row per session with an open request to a model with limits. A worker that died no longer renews it. */
export const openRequests = pgTable(
  "open_requests",
  {
    sessionId: text("session_id").primaryKey(),
    /** A new id for each request. */
    id: bigserial({ mode: "number" }).notNull(),
    key: text().notNull(),
    minute: bigint({ mode: "number" }).notNull(),
    /** Reserved in that minute's row. */
    tokens: bigint({ mode: "number" }).notNull(),
    expiresAt: at("expires_at").notNull(),
  },
  (t) => [index("open_requests_key_idx").on(t.key)],
);
