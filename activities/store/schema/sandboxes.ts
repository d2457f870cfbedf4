/** Where a session's sandbox is, and what remains to be reported about it. */
import { bigint, integer, json, pgTable, text, bigserial, unique } from "drizzle-orm/pg-core";
import { at } from "./columns.ts";

/** A file that no checkpoint holds, and why. */
export interface LeftOutFile {
  readonly path: string;
  readonly bytes: number;
  readonly reason: string;
}

/**
 * One row per session, written when its sandbox is open and contains its files: a sandbox that this row does not name is not
 * trusted to hold them.
 */
export const sandboxes = pgTable("sandboxes", {
  sessionId: text("session_id").primaryKey(),
  /** Name of the Docker host, for people: it may change with every deploy. */
  host: text().notNull(),
  /** Identity of the volume: another volume with the same name, on any host, has a different one. */
  volume: text().notNull(),
  /** Identity of the container, and of the start of its processes. */
  container: text().notNull(),
  boot: text().notNull(),
  /** The image that it runs from, by digest, or by id if no registry has it; null if not known. */
  image: text(),
  /** The base that its workspace stands on; null if it has none. */
  baseKey: text("base_key"),
  /** Queue of the host; null means the workflow's own. */
  taskQueue: text("task_queue"),
  /** The files after this step are in a checkpoint, whether or not it changed any. */
  savedStep: integer("saved_step"),
  /**
   * The run that saved these files for the last time and removed the sandbox, or is about to: until another run opens a
   * sandbox, its content is ignored, and that run opens none.
   */
  closedRun: text("closed_run"),
  /** When it was stopped, its files saved, and until when it is kept; null while it runs or once it is removed. */
  parkedAt: at("parked_at"),
  parkedUntil: at("parked_until"),
  /** What a stopped one takes on its host's disk; null if that could not be counted. */
  parkedBytes: bigint("parked_bytes", { mode: "number" }),
  /** Why the one that was stopped last was removed, for people; null if none was, or another one was opened since. */
  unparked: text(),
  /**
   * Saves that have begun since the last one ended, in whatever way. Each was lost with its worker, except that one of them
   * may be in progress.
   */
  savesBegun: integer("saves_begun").notNull().default(0),
  /** Files that were reported to be in no checkpoint. */
  leftOut: json("left_out").$type<LeftOutFile[]>().notNull().default([]),
  /** Notice for the model at the next step boundary. */
  notice: text(),
});

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
    /** `push`, `pull-request` or `review`. */
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
    /** What did not come out as it was asked for, although it was delivered. */
    remarks: json().$type<readonly string[]>(),
    /** The run that stored this last. */
    runId: text("run_id").notNull(),
    at: at("at").notNull().defaultNow(),
  },
  (t) => [unique("publications_session_kind_ref_commit_key").on(t.sessionId, t.kind, t.ref, t.commit)],
);
