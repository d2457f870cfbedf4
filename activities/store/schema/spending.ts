/** What model calls cost, for people and for budgets. Survives its sessions. */
import {
  bigint,
  bigserial,
  date,
  doublePrecision,
  integer,
  json,
  pgTable,
  primaryKey,
  text,
} from "drizzle-orm/pg-core";
import { at } from "./columns.ts";

/** One row per day, and whatever `usage` tells apart: written with the bill of each model call, and kept when its session is deleted. */
export const spending = pgTable(
  "spending",
  {
    /** By the database's clock, in UTC. */
    day: date().notNull(),
    /** Empty if unknown, or removed by `purge`. */
    owner: text().notNull().default(""),
    tenant: text().notNull().default(""),
    /** Host and path of the session's repository; empty if it has none. */
    repo: text().notNull().default(""),
    model: text().notNull(),
    /** As in `model_calls`. */
    purpose: text().notNull(),
    calls: integer().notNull(),
    /** Tokens. */
    input: bigint("input_tokens", { mode: "number" }).notNull().default(0),
    cached: bigint("cached_tokens", { mode: "number" }).notNull().default(0),
    output: bigint("output_tokens", { mode: "number" }).notNull().default(0),
    costUsd: doublePrecision("cost_usd").notNull(),
  },
  (t) => [primaryKey({ columns: [t.day, t.owner, t.tenant, t.repo, t.model, t.purpose] })],
);

/** One row per budget and period: what was billed in it. */
export const budgetWindows = pgTable(
  "budget_windows",
  {
    /** What the budget is for: `person:ann`, `tenant:acme`, `repo:github.com/acme/app`, `all`; and its period. */
    scope: text().notNull(),
    /** First day of the period, in the policy's time zone. */
    periodStart: date("period_start").notNull(),
    usd: doublePrecision().notNull(),
    /** Shares of the budget that were told to be used. */
    warned: json().$type<number[]>().notNull().default([]),
  },
  (t) => [primaryKey({ columns: [t.scope, t.periodStart] })],
);

/** One row per session with an open request that a budget is for: the most that it may cost. */
export const budgetReservations = pgTable("budget_reservations", {
  sessionId: text("session_id").primaryKey(),
  /** A new id for each request. */
  id: bigserial({ mode: "number" }).notNull(),
  usd: doublePrecision().notNull(),
  /** Scopes of `budget_windows`, each with the first day of its period. */
  scopes: text().array().notNull(),
  model: text().notNull(),
  at: at("at").notNull().defaultNow(),
});
