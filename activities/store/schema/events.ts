/** The tables that watchers read. */
import { sql } from "drizzle-orm";
import { bigint, index, integer, json, pgTable, primaryKey, text } from "drizzle-orm/pg-core";
import { at } from "./columns.ts";

/** What watchers see, apart from the deltas. `seq` is shared with the chunks. */
export const events = pgTable(
  "events",
  {
    sessionId: text("session_id").notNull(),
    seq: bigint({ mode: "number" }).notNull(),
    epoch: integer().notNull(),
    step: integer().notNull(),
    attempt: integer().notNull(),
    type: text().notNull(),
    data: json().notNull(),
    at: at("at").notNull().defaultNow(),
  },
  (t) => [
    primaryKey({ columns: [t.sessionId, t.seq] }),
    // Used for each incoming message, to check whether it was already announced.
    index("events_queued_idx")
      .on(t.sessionId, sql`(data->>'id')`)
      .where(sql`type = 'message:queued'`),
  ],
);

/** Deltas of the step in flight; dropped once its answer is stored. */
export const streamChunks = pgTable(
  "stream_chunks",
  {
    sessionId: text("session_id").notNull(),
    seq: bigint({ mode: "number" }).notNull(),
    epoch: integer().notNull(),
    step: integer().notNull(),
    attempt: integer().notNull(),
    chunkType: text("chunk_type").notNull(),
    text: text().notNull(),
    at: at("at").notNull().defaultNow(),
  },
  (t) => [primaryKey({ columns: [t.sessionId, t.seq] })],
);
