/** What model calls cost, for people and for budgets. Survives its sessions. */
import {
  bigint,
  bigserial,
  date,
  doublePrecision,
  index,
  integer,
  pgTable,
  primaryKey,
  text,
} from "drizzle-orm/pg-core";
import { at } from "./columns.ts";

/** One row per day, and whatever `usage` tells apart, for each session: no session's bill waits for another's. Written with the bill of each model call, and kept when its session is deleted. */
export const spending = pgTable(
  "spending",
  {
    /** On which the request was sent: by the database's clock, in the installation's zone. */
    day: date().notNull(),
    /** Empty if unknown, or removed by `purge`. */
    owner: text().notNull().default(""),
    tenant: text().notNull().default(""),
    /** Host and path of the session's repository; empty if it has none. */
    repo: text().notNull().default(""),
    model: text().notNull(),
    /** As in `model_calls`. */
    purpose: text().notNull(),
    /** A hash of the session's id: sessions that are billed at the same moment have rows of their own. */
    ofSession: text("of_session").notNull(),
    /** Sessions that began with a call of it; delegates are their parents'. */
    sessions: integer().notNull().default(0),
    calls: integer().notNull(),
    /** Calls whose cost is not known: they are not in `cost_usd`. */
    uncosted: integer().notNull().default(0),
    /** Tokens. */
    input: bigint("input_tokens", { mode: "number" }).notNull().default(0),
    cached: bigint("cached_tokens", { mode: "number" }).notNull().default(0),
    output: bigint("output_tokens", { mode: "number" }).notNull().default(0),
    costUsd: doublePrecision("cost_usd").notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.day, t.owner, t.tenant, t.repo, t.model, t.purpose, t.ofSession] }),
    index("spending_owner_idx").on(t.owner, t.day),
    index("spending_tenant_idx").on(t.tenant, t.day),
    index("spending_repo_idx").on(t.repo, t.day),
  ],
);

/** The shares of budgets at which people were told that they are used: once in each period. */
export const budgetWarnings = pgTable(
  "budget_warnings",
  {
    /** What the budget is for, and its period: `person:ann month`, `tenant:acme month`, `repo:github.com/acme/app week`, `all day`. */
    scope: text().notNull(),
    /** First day of the period, in the installation's zone. */
    periodStart: date("period_start").notNull(),
    share: doublePrecision("used_share").notNull(),
  },
  (t) => [primaryKey({ columns: [t.scope, t.periodStart, t.share] })],
);

/** One row per session with an open request that a budget is for: the most that it may cost. */
export const budgetReservations = pgTable("budget_reservations", {
  sessionId: text("session_id").primaryKey(),
  /** A new id for each request. */
  id: bigserial({ mode: "number" }).notNull(),
  usd: doublePrecision().notNull(),
  /** As of `budget_warnings`. */
  scopes: text().array().notNull(),
  model: text().notNull(),
  at: at("at").notNull().defaultNow(),
});

/** What a person allowed a session to spend beyond a budget in its current period: one row per answer. */
export const budgetAllowances = pgTable(
  "budget_allowances",
  {
    sessionId: text("session_id").notNull(),
    /** The question that was answered: one answer allows once. */
    question: text().notNull(),
    /** As of `budget_warnings`, with the first day of its period. */
    scope: text().notNull(),
    usd: doublePrecision().notNull(),
    /** What the session and its delegates had cost when it was allowed: only what they cost since then uses it up. */
    baseUsd: doublePrecision("base_usd").notNull(),
    at: at("at").notNull().defaultNow(),
  },
  (t) => [primaryKey({ columns: [t.sessionId, t.question] })],
);
