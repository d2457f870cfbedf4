/** The worker processes. */
import { sql } from "drizzle-orm";
import {
  bigint,
  bigserial,
  boolean,
  check,
  index,
  integer,
  json,
  pgTable,
  primaryKey,
  serial,
  text,
} from "drizzle-orm/pg-core";
import { at } from "./columns.ts";

/**
 * One row per worker process. For as long as it lives, it holds an advisory lock by this id on a connection of its own: the
 * kernel closes that connection with the process, whatever ended it.
 */
export const workers = pgTable("workers", {
  id: serial().primaryKey(),
  /** Its identity in Temporal. */
  identity: text().notNull(),
  namespace: text().notNull(),
  startedAt: at("started_at").notNull().defaultNow(),
  /** Set by the worker itself, or by another that found it lost and gave its work to others. */
  endedAt: at("ended_at"),
  /** Those whose calls it runs, as of its newest check for lost workers: they are given to others first. */
  sessions: text()
    .array()
    .notNull()
    .default(sql`'{}'`),
});

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

/**
 * One row, made by `longhaul_installation`: which installation this database is, in a restored copy too. Its sandboxes on an engine and
 * its runs in a namespace that others use are found by it.
 */
export const installation = pgTable(
  "installation",
  {
    only: boolean().primaryKey().default(true),
    id: text()
      .notNull()
      .default(sql`gen_random_uuid()`),
    /** Time zone of the days, weeks and months that money is counted in. */
    zone: text("money_zone").notNull().default("UTC"),
    /** The policy's budgets, as the newest worker has them: for people who ask what is left. */
    budgets: json(),
  },
  (t) => [check("installation_only_check", sql`${t.only}`)],
);

/** Postgres roles that each see one person's sessions. */
export const clientRoles = pgTable("client_roles", {
  role: text().primaryKey(),
  owner: text().notNull(),
});
