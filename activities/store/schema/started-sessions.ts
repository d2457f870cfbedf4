/** Sessions that others start: for many tasks, at fixed times, by a call of another session. Also the record of a deleted one. */
import { sql } from "drizzle-orm";
import {
  check,
  doublePrecision,
  index,
  integer,
  json,
  pgTable,
  primaryKey,
  text,
  bigint,
} from "drizzle-orm/pg-core";
import { at, bytea, supersededBy } from "./columns.ts";

/** A file of tasks that are processed some at a time. */
export const batches = pgTable(
  "batches",
  {
    id: text().primaryKey(),
    createdAt: at("created_at").notNull().defaultNow(),
    endedAt: at("ended_at"),
    owner: text(),
    /** Sessions at once. */
    concurrency: integer().notNull(),
    /** Number of consecutive failures of one kind that end the batch; null means no limit. */
    stopAfter: integer("stop_after"),
    /** USD for the whole batch; null means no limit. */
    maxCostUsd: doublePrecision("max_cost_usd"),
    status: text().notNull().default("running"),
    /** If its items are attempts at one task: what is wanted of them. */
    attempts: json(),
    /** The attempt that was chosen. */
    chosen: json(),
  },
  (t) => [
    check("batches_status_check", sql`${t.status} in ('running','completed','failed','stopped','cancelled')`),
  ],
);

/** One task of a batch. A repeated batch starts a new session, with the next attempt, for what did not complete. */
export const batchItems = pgTable(
  "batch_items",
  {
    batchId: text("batch_id")
      .notNull()
      .references(() => batches.id),
    itemId: text("item_id").notNull(),
    /** Its place in the file, from 1; 0 if the file no longer has it. */
    ordinal: integer().notNull(),
    /** SHA-256 of the item's entry in the file: a changed item is repeated. */
    digest: text().notNull(),
    sessionId: text("session_id"),
    /** The data from which its session is created, without files; kept until then. */
    start: json(),
    /** The session's initial files, kept until it is created. */
    manifest: bytea(),
    pack: bytea(),
    attempt: integer().notNull().default(0),
    status: text().notNull().default("pending"),
    /** Type of the failure that ended it. */
    failure: text(),
  },
  (t) => [
    primaryKey({ columns: [t.batchId, t.itemId] }),
    index("batch_items_session_idx").on(t.sessionId),
    check(
      "batch_items_status_check",
      sql`${t.status} in ('pending','running','completed','failed','cancelled','max_steps')`,
    ),
  ],
);

/** The task and configuration that a Temporal schedule starts; Temporal keeps its times and overlap policy. */
export const schedules = pgTable("schedules", {
  name: text().primaryKey(),
  createdAt: at("created_at").notNull().defaultNow(),
  owner: text(),
  task: text().notNull(),
  /** The resolved run configuration, without secrets. */
  config: json().notNull(),
});

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

export const deletedSessions = pgTable("deleted_sessions", {
  id: text().primaryKey(),
  owner: text(),
  deletedAt: at("deleted_at").notNull().defaultNow(),
  deletedBy: text("deleted_by"),
});
