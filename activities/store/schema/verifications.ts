/** What commands said about a session's work. */
import { check, index, integer, json, pgTable, primaryKey, text } from "drizzle-orm/pg-core";
import { sql } from "drizzle-orm";
import { at, supersededBy } from "./columns.ts";

/** One row per command of `verify` and round. */
export const verifications = pgTable(
  "verifications",
  {
    sessionId: text("session_id").notNull(),
    epoch: integer().notNull(),
    /** The step whose answer was verified. */
    step: integer().notNull(),
    /** 0 for the first look. */
    round: integer().notNull(),
    /** Its place in `verify.commands`. */
    command: integer().notNull(),
    outcome: text().notNull(),
    /** Null if it did not end by itself. */
    exitCode: integer("exit_code"),
    ms: integer("duration_ms").notNull(),
    /** Hash of the files that it was run on. */
    tree: text().notNull(),
    /** Equal for equal failures. */
    signature: text(),
    /** Of its whole output. */
    handle: text(),
    /** Paths under `verify.protect` that differ from where the session began. */
    protectedPaths: json("protected").$type<string[]>(),
    at: at("at").notNull().defaultNow(),
    supersededEpoch: integer("superseded_epoch"),
    supersededBy: supersededBy(),
  },
  (t) => [
    primaryKey({ columns: [t.sessionId, t.epoch, t.step, t.round, t.command] }),
    index("verifications_at_idx").on(t.sessionId, t.at),
    check(
      "verifications_outcome_check",
      sql`${t.outcome} in ('passed','failed','unavailable','changed-checks')`,
    ),
  ],
);
