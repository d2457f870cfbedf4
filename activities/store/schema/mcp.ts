/** What is known of MCP servers. Part of schema.ts. */
import { integer, json, pgTable, primaryKey, text } from "drizzle-orm/pg-core";
import { at, bytea } from "./columns.ts";

/** The tools of a server as a session took them: its prompt does not change when the server does. */
export const mcpCatalogues = pgTable(
  "mcp_catalogues",
  {
    sessionId: text("session_id").notNull(),
    server: text().notNull(),
    epoch: integer().notNull(),
    takenAt: at("taken_at").notNull().defaultNow(),
    /** Revision of the protocol that it speaks. */
    era: text().notNull(),
    tools: json().notNull(),
    digest: text().notNull(),
    /** Names of tools that a search has made callable. */
    found: json(),
    /** What the server lists by now, if that differs: taken when the prompt changes anyway. */
    next: json(),
  },
  (t) => [primaryKey({ columns: [t.sessionId, t.server] })],
);

/** OAuth tokens, encrypted. */
export const mcpCredentials = pgTable(
  "mcp_credentials",
  {
    server: text().notNull(),
    principal: text().notNull(),
    sealed: bytea().notNull(),
    keyId: text("key_id").notNull(),
    expiresAt: at("expires_at"),
    version: integer().notNull().default(1),
  },
  (t) => [primaryKey({ columns: [t.server, t.principal] })],
);
