/** What commands said about a session's work. */
import { check, doublePrecision, integer, json, pgTable, primaryKey, text } from "drizzle-orm/pg-core";
import { sql } from "drizzle-orm";
import { at } from "./columns.ts";

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
    /** The files that it was run on: the commit's tree, or a hash of what is saved. */
    tree: text().notNull(),
    /** The command itself, masked. */
    text: text("command_text").notNull(),
    /** Equal for equal failures. */
    signature: text(),
    /** The part of its output that matters, masked. */
    output: text("output_text").notNull().default(""),
    /** By which its whole output is read, masked; null if it printed nothing. */
    handle: text("output_handle"),
    /** The commit that has these files; null for a session without a repository. */
    commit: text(),
    /** Paths under `verify.protect` that differ from where the session began. */
    protectedPaths: json("protected").$type<string[]>(),
    /** The number in the file of `verify.result`. */
    result: doublePrecision(),
    /** Lines that the work changes outside of tests, if they are counted. */
    changedLines: integer("changed_lines"),
    at: at("at").notNull().defaultNow(),
  },
  (t) => [
    primaryKey({ columns: [t.sessionId, t.epoch, t.step, t.round, t.command] }),
    check(
      "verifications_outcome_check",
      sql`${t.outcome} in ('passed','failed','unavailable','changed-checks')`,
    ),
  ],
);
