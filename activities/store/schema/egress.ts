/** Hosts that a session's sandbox may reach by name beyond its configuration. */
import { bigserial, integer, pgTable, text, unique } from "drizzle-orm/pg-core";
import { at, supersededBy } from "./columns.ts";

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
