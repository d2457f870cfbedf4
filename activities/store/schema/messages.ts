/** The transcript and its rounds, and the events and chunks that watchers read of it. */
import { and, eq, getTableColumns, isNull, sql } from "drizzle-orm";
import {
  bigint,
  bigserial,
  check,
  doublePrecision,
  index,
  integer,
  json,
  pgTable,
  pgView,
  text,
  unique,
  uniqueIndex,
  primaryKey,
} from "drizzle-orm/pg-core";
import { at, multirange, supersededBy } from "./columns.ts";

/** Messages as they were stored. The view `messages` adds the effect of compactions. */
export const storedMessages = pgTable(
  "stored_messages",
  {
    id: bigserial({ mode: "number" }).primaryKey(),
    sessionId: text("session_id").notNull(),
    sequence: bigint({ mode: "number" }).notNull(),
    /** Order in the view: the sequence, but a summary is at (last replaced + 0.5). */
    position: doublePrecision().notNull(),
    epoch: integer().notNull(),
    step: integer().notNull(),
    /** Which message of the step: `system`, `user`, `assistant`, `tool:0` …, `summary:3`, `warning`. */
    slot: text().notNull(),
    role: text().notNull(),
    kind: text().notNull(),
    content: json().notNull(),
    /** Client ids, first and last queuedAt of coalesced guidance. */
    meta: json(),
    tokenCount: integer("token_count").notNull(),
    prunedStep: integer("pruned_step"),
    supersededEpoch: integer("superseded_epoch"),
    supersededBy: supersededBy(),
    createdAt: at("created_at").notNull().defaultNow(),
  },
  (t) => [
    unique("stored_messages_session_sequence_key").on(t.sessionId, t.sequence),
    unique("stored_messages_session_epoch_step_slot_key").on(t.sessionId, t.epoch, t.step, t.slot),
    index("stored_messages_live_idx")
      .on(t.sessionId, t.position)
      .where(sql`superseded_epoch is null`),
    index("stored_messages_user_idx")
      .on(t.sessionId, t.position)
      .where(sql`superseded_epoch is null and role = 'user'`),
    index("stored_messages_summary_idx")
      .on(t.sessionId, t.position)
      .where(sql`superseded_epoch is null and kind = 'summary'`),
    // Used when a folder's instructions are found, to check whether a result already contained them.
    index("stored_messages_notes_idx")
      .on(t.sessionId)
      .where(sql`superseded_epoch is null and role = 'tool' and meta is not null`),
    check("stored_messages_role_check", sql`${t.role} in ('system','user','assistant','tool')`),
  ],
);

export const compactionEvents = pgTable(
  "compaction_events",
  {
    id: bigserial({ mode: "number" }).primaryKey(),
    sessionId: text("session_id").notNull(),
    epoch: integer().notNull(),
    step: integer().notNull(),
    round: integer().notNull(),
    trigger: text().notNull(),
    strategy: text().notNull(),
    /** `compacted`, `failed`: history unchanged, `undone`: undone by a person. */
    status: text().notNull(),
    /** Typed reason of a failure. */
    reason: text(),
    /** The outcome of each attempt in the fallback chain. */
    attempts: json().notNull(),
    tokensBefore: integer("tokens_before").notNull(),
    tokensAfter: integer("tokens_after").notNull(),
    fromSequence: bigint("from_sequence", { mode: "number" }),
    toSequence: bigint("to_sequence", { mode: "number" }),
    summaryContent: text("summary_content"),
    /** Sequences that it removes from the view: the replaced rows; for an undone round, its own summary. */
    replaced: multirange(),
    durationMs: integer("duration_ms").notNull(),
    supersededEpoch: integer("superseded_epoch"),
    supersededBy: supersededBy(),
    createdAt: at("created_at").notNull().defaultNow(),
  },
  (t) => [
    // Every load of a view reads the session's rounds.
    index("compaction_events_session_idx").on(t.sessionId, t.id),
    uniqueIndex("compaction_events_round_key")
      .on(t.sessionId, t.epoch, t.round)
      .where(sql`status <> 'failed'`),
  ],
);

const { supersededBy: _supersededBy, ...columns } = getTableColumns(storedMessages);

/**
 * Messages with the effect of the rounds in force. A round's own row lists the sequences that it replaced, so its marks are
 * one row however many messages they cover, and disappear with the round if it is undone or superseded. A role that reads
 * the view sees only rows that the tables show to it.
 */
export const messages = pgView("messages")
  .with({ securityInvoker: true })
  .as((query) =>
    query
      .select({
        ...columns,
        isCompacted: sql<boolean>`${compactionEvents.id} is not null`.as("is_compacted"),
        compactedRound: sql<number | null>`${compactionEvents.round}`.as("compacted_round"),
        compactedAt: sql`${compactionEvents.createdAt}`
          .mapWith((value: string): Date | null => new Date(value))
          .as("compacted_at"),
        // Of the act that hid it; computed only if it is asked for.
        prunedAt: sql`case when ${storedMessages.prunedStep} is not null then (
          select max(m.created_at) from view_marks m
          where m.session_id = ${storedMessages.sessionId} and m.kind = 'prune' and m.superseded_epoch is null
            and m.step = ${storedMessages.prunedStep} and ${storedMessages.sequence} <@ m.sequences) end`
          .mapWith((value: string | null): Date | null => (value === null ? null : new Date(value)))
          .as("pruned_at"),
      })
      .from(storedMessages)
      .leftJoin(
        compactionEvents,
        and(
          eq(compactionEvents.sessionId, storedMessages.sessionId),
          isNull(compactionEvents.supersededEpoch),
          sql`${storedMessages.sequence} <@ ${compactionEvents.replaced}`,
        ),
      ),
  );

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
