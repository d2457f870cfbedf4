/** What is stored of an MCP server's tools. Types only. */

export interface McpToolEntry {
  /** The server's name for the tool. */
  readonly name: string;
  /** The server's description: foreign text, cleaned and bounded. */
  readonly description: string;
  /** JSON schema of the input. */
  readonly inputSchema: Record<string, unknown>;
  /** The server's hints about what the tool does; not to be trusted. */
  readonly hints?: {
    readonly readOnly?: boolean;
    readonly idempotent?: boolean;
    readonly destructive?: boolean;
  };
}

/** A server's tools as a session loaded them. */
export interface McpCatalogue {
  readonly server: string;
  /** Protocol revision that the server speaks; empty if it did not answer. */
  readonly era: string;
  readonly digest: string;
  readonly tools: readonly McpToolEntry[];
  /** Full names of tools that a search has made callable, in the order found. */
  readonly found: readonly string[];
  /** Why the server has no tools. */
  readonly failed?: string;
  /** The server now lists different tools. They are loaded when the prompt changes anyway. */
  readonly next?: {
    readonly digest: string;
    /** Number of compaction rounds when that was seen. */
    readonly round: number;
    /** The server's names of tools that it no longer lists. */
    readonly removed: readonly string[];
  };
}
