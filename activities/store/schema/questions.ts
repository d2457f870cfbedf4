/** Questions of sessions to people. */
import { sql } from "drizzle-orm";
import {
  bigserial,
  boolean,
  check,
  index,
  integer,
  json,
  pgTable,
  primaryKey,
  text,
  unique,
} from "drizzle-orm/pg-core";
import { at, supersededBy } from "./columns.ts";

/** A question to a person, or a call that waits for a person's approval. The workflow decides which answer counts. */
export const questions = pgTable(
  "questions",
  {
    sessionId: text("session_id").notNull(),
    epoch: integer().notNull(),
    /** Named by its call: `s12c0`. */
    id: text().notNull(),
    step: integer().notNull(),
    callIndex: integer("call_index"),
    kind: text().notNull(),
    text: text().notNull(),
    /** Labels with descriptions to choose from, in order; null if any text is an answer. */
    options: json(),
    defaultText: text("default_text"),
    /** SHA-256 of the call's tool and input: the approval covers exactly these. */
    inputHash: text("input_hash"),
    askedAt: at("asked_at").notNull().defaultNow(),
    /** Whether its call waits for the answer; if not, the answer comes as a message. */
    blocks: boolean().notNull().default(true),
    /** When the default is used; null means never. */
    expiresAt: at("expires_at"),
    status: text().notNull().default("open"),
    answer: text(),
    answeredBy: text("answered_by"),
    answeredAt: at("answered_at"),
    /** For a superseded one: its status before. */
    supersededFrom: text("superseded_from"),
    supersededBy: supersededBy(),
  },
  (t) => [
    primaryKey({ columns: [t.sessionId, t.epoch, t.id] }),
    index("questions_open_idx")
      .on(t.askedAt)
      .where(sql`status = 'open'`),
    check("questions_kind_check", sql`${t.kind} in ('ask','approval','mcp','budget','egress','plan')`),
    check(
      "questions_status_check",
      sql`${t.status} in ('open','answered','defaulted','declined','withdrawn','superseded')`,
    ),
  ],
);

/** Calls that a person allowed for the rest of the session. */
export const permissionGrants = pgTable("permission_grants", {
  id: bigserial({ mode: "number" }).primaryKey(),
  sessionId: text("session_id").notNull(),
  epoch: integer().notNull(),
  step: integer().notNull(),
  tool: text().notNull(),
  /** As in `permissions`: the part of the call that it covers; null means every call of the tool. */
  match: text(),
  grantedBy: text("granted_by"),
  grantedAt: at("granted_at").notNull().defaultNow(),
  supersededEpoch: integer("superseded_epoch"),
  supersededBy: supersededBy(),
});

/** Domains that were allowed while the session ran. */
export const egressRules = pgTable(
  "egress_rules",
  {
    id: bigserial({ mode: "number" }).primaryKey(),
    sessionId: text("session_id").notNull(),
    epoch: integer().notNull(),
    step: integer().notNull(),
    /** A pattern as in `sandbox.domains`. */
    domain: text().notNull(),
    /** Who allowed it: a person's client, or an answer to a question. */
    by: text().notNull(),
    supersededEpoch: integer("superseded_epoch"),
    supersededBy: supersededBy(),
    at: at("at").notNull().defaultNow(),
  },
  (t) => [unique("egress_rules_session_epoch_domain_key").on(t.sessionId, t.epoch, t.domain)],
);
