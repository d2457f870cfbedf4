/** What is kept of an MCP server's tools. Types only. */

export interface McpToolEntry {
  /** As the server calls it. */
  readonly name: string;
  /** The server's own words: foreign text, cleaned and bounded. */
  readonly description: string;
  /** JSON schema of the input. */
  readonly inputSchema: Record<string, unknown>;
  /** The server's own word on what the tool does; only a hint. */
  readonly hints?: {
    readonly readOnly?: boolean;
    readonly idempotent?: boolean;
    readonly destructive?: boolean;
  };
}

/** The tools of a server as a session took them. */
export interface McpCatalogue {
  readonly server: string;
  /** Revision of the protocol that it speaks; empty if it did not answer. */
  readonly era: string;
  readonly digest: string;
  readonly tools: readonly McpToolEntry[];
  /** Full names of tools that a search has made callable, in the order in which they were found. */
  readonly found: readonly string[];
  /** Why it has no tools. */
  readonly failed?: string;
  /** It lists others by now. They are taken when the prompt changes anyway. */
  readonly next?: {
    readonly digest: string;
    /** Compaction rounds when that was seen. */
    readonly round: number;
    /** Names, as the server calls them, that it does not list any more. */
    readonly removed: readonly string[];
  };
}
