/** Types that tools, the model and the store share: a tool, its limits, what is stored of an MCP server's tools. */
import type { FilePart } from "./message.ts";

/** Limits of one tool; `tools.<name>` in `longhaul.yaml` overrides those that the tool uses. */
export interface ToolLimits {
  /** Longest that a program started by the call may run in the sandbox, unless the input sets another time. */
  readonly timeoutMs: number;
  /** Longest time that the input may ask for. */
  readonly maxTimeoutMs: number;
  /** Most characters of the result that the model sees. */
  readonly maxChars: number;
  readonly maxLines: number;
  readonly maxLineChars: number;
  readonly maxMatches: number;
}

export interface SessionMemory {
  /**
   * A page of a stored output, its total characters and where the next page starts; undefined if the handle does not
   * exist.
   */
  readOutput(
    handle: string,
    offset: number,
    limit: number,
  ): Promise<{ readonly text: string; readonly end: number; readonly total: number } | undefined>;
  /** Transcript rows, compacted ones included, and whole outputs that contain every word; newest first. */
  search(searchWords: readonly string[], limit: number): Promise<HistorySearch>;
  /** Stores bytes by their SHA-256; the same bytes are stored once. */
  saveBlob(bytes: Uint8Array, mediaType: string): Promise<FilePart>;
}

export interface HistorySearch {
  readonly hits: readonly {
    readonly sequence: number;
    readonly step: number;
    readonly role: string;
    readonly excerpt: string;
    /** Where the words are in a whole output; absent if they are in the message itself. */
    readonly output?: { readonly handle: string; readonly offset: number };
  }[];
  /** Number of the oldest whole outputs that were skipped because one search does not cover them all. */
  readonly skippedOutputs: number;
}

/** A tool as the model sees it. */
export interface ToolSpec {
  readonly name: string;
  readonly description: string;
  /** JSON schema of the input. */
  readonly inputSchema: Record<string, unknown>;
  /** The tool comes from an MCP server or the operator: if the provider refuses it, the request is repeated without it. */
  readonly isForeign?: true;
}

/** A tool of an MCP server, as stored. */
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
