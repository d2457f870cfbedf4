/** Bases that the operator has made for everyone: of which repositories, and what each Docker host has of them. */
import { bigint, index, integer, json, pgTable, primaryKey, text } from "drizzle-orm/pg-core";
import { at } from "./columns.ts";

/** Docker hosts of this installation, as their workers tell at their start and from time to time. */
export const sandboxHosts = pgTable("sandbox_hosts", {
  name: text().primaryKey(),
  /** Where work for its sandboxes goes; null if that is the workflows' own queue. */
  taskQueue: text("task_queue"),
  seenAt: at("seen_at").notNull().defaultNow(),
  /** What its bases and stopped sandboxes take, and may take, in bytes, as last counted; null if it is not known. */
  diskUsed: bigint("disk_used", { mode: "number" }),
  diskLimit: bigint("disk_limit", { mode: "number" }),
  /** How many bases, how many stopped sandboxes, and how many of those have files that no save has. */
  bases: integer(),
  parked: integer(),
  unsaved: integer(),
});

/** A repository whose default branch is kept warm. Temporal keeps how often. */
export const warms = pgTable("warms", {
  /** Of the address, readable. */
  id: text().primaryKey(),
  url: text().notNull(),
  /** The resolved run configuration, without secrets: what a session of that repository would have. */
  config: json().notNull(),
  createdAt: at("created_at").notNull().defaultNow(),
});

/** What one host has of it: the last base that was made, and how the last look ended. */
export const warmBases = pgTable(
  "warm_bases",
  {
    warmId: text("warm_id").notNull(),
    host: text().notNull(),
    /** Null until one was made. */
    baseKey: text("base_key"),
    commit: text("commit_id"),
    files: integer(),
    bytes: bigint({ mode: "number" }),
    madeAt: at("made_at"),
    checkedAt: at("checked_at").notNull().defaultNow(),
    /** Why the last look made none; null if it is there. */
    failure: text(),
  },
  (t) => [primaryKey({ columns: [t.warmId, t.host] }), index("warm_bases_base_idx").on(t.baseKey)],
);
