/** Tools and credentials of MCP servers. */
import { integer, json, pgTable, primaryKey, text } from "drizzle-orm/pg-core";
import { at, bytea } from "./columns.ts";

/** The list of a server's tools that a session uses: its prompt does not change when the server does. */
export const mcpCatalogues = pgTable(
  "mcp_catalogues",
  {
    sessionId: text("session_id").notNull(),
    server: text().notNull(),
    epoch: integer().notNull(),
    /** Revision of the protocol that the server speaks. */
    era: text().notNull(),
    tools: json().notNull(),
    digest: text().notNull(),
    /** Names of tools that a search made callable. */
    found: json(),
    /** The server's current list, if it differs: used once the prompt changes anyway. */
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
