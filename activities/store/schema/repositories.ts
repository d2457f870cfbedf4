/** The repository that a session's files came from, and what was delivered of its work. */
import { bigserial, integer, pgTable, text, unique } from "drizzle-orm/pg-core";
import { at } from "./columns.ts";

/** The repository that a session's workspace was cloned from. Its address holds no credentials. */
export const repositories = pgTable("repositories", {
  sessionId: text("session_id").primaryKey(),
  url: text().notNull(),
  /** The branch, tag or commit that was asked for; null means the remote's default branch. */
  ref: text(),
  baseCommit: text("base_commit").notNull(),
  /** The branch that the session's work is pushed to. */
  branch: text().notNull(),
});

/** Pushes and pull requests, written before they are made: a forced push is only allowed on the evidence of these rows. */
export const publications = pgTable(
  "publications",
  {
    id: bigserial({ mode: "number" }).primaryKey(),
    sessionId: text("session_id").notNull(),
    epoch: integer().notNull(),
    step: integer().notNull(),
    /** `push` or `pull-request`. */
    kind: text().notNull(),
    ref: text().notNull(),
    commit: text().notNull(),
    /** Address of a pull request. */
    url: text(),
    /**
     * `begun`: announced, its outcome is not known yet. `done` or `refused`. `settled`: refused, and later nothing was left to deliver.
     */
    status: text().notNull(),
    /** Why it was refused. */
    reason: text(),
    /** The run that stored this last; null in rows of earlier versions. */
    runId: text("run_id"),
    at: at("at").notNull().defaultNow(),
  },
  (t) => [unique("publications_session_kind_ref_commit_key").on(t.sessionId, t.kind, t.ref, t.commit)],
);
