/** Where a session's sandbox is, and what is still to be reported of it. Part of schema.ts. */
import { integer, json, pgTable, text } from "drizzle-orm/pg-core";

/** A file that no checkpoint holds, and why. */
export interface LeftOutFile {
  readonly path: string;
  readonly bytes: number;
  readonly reason: string;
}

/**
 * One row a session, written when its sandbox is open and its files are in: a sandbox that this row does not name is not trusted
 * to hold them.
 */
export const sandboxes = pgTable("boxes", {
  sessionId: text("session_id").primaryKey(),
  /** Name of the Docker host, for people: it may change with every deploy. */
  host: text().notNull(),
  /** Identity of the volume: another one of the same name, there or on another host, has another. */
  volume: text().notNull(),
  /** Identity of the container, and of the life of its processes. */
  container: text().notNull(),
  boot: text().notNull(),
  /** What it runs from: the image by digest, or its id if no registry has it; null if that is not known. */
  image: text(),
  /** Queue of the host; null means the workflow's own. */
  taskQueue: text("task_queue"),
  /** The files after this step are in a checkpoint, whether or not it changed any. */
  savedStep: integer("saved_step"),
  /**
   * The run that saved these files for the last time and removed the sandbox, or is about to: until another run opens it,
   * nothing in it counts, and that run opens none.
   */
  closedRun: text("closed_run"),
  /**
   * Saves that were begun and have not ended, in whatever way, since one last did: each was lost with its worker. One of
   * them may be in progress.
   */
  savesBegun: integer("saves_begun").notNull().default(0),
  /** Files that were reported to be in no checkpoint. */
  leftOut: json("left_out").$type<LeftOutFile[]>().notNull().default([]),
  /** Notice for the model at the next step boundary. */
  notice: text(),
});
