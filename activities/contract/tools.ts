/** What tools, the model and the store agree on. */
import type { FilePart } from "./message.ts";

/** Limits of one tool; `longhaul.yaml`'s `tools.<name>` overrides those that it heeds. */
export interface ToolLimits {
  /** Longest a program may run that the call starts in the sandbox, if the input does not say otherwise. */
  readonly timeoutMs: number;
  /** Most that the input may ask for. */
  readonly maxTimeoutMs: number;
  /** Characters of the result that the model sees. */
  readonly maxChars: number;
  readonly maxLines: number;
  readonly maxLineChars: number;
  readonly maxMatches: number;
}

export interface SessionMemory {
  /** Characters of a whole output and where the next page begins; undefined if there is no such handle. */
  readOutput(
    handle: string,
    offset: number,
    limit: number,
  ): Promise<{ readonly text: string; readonly end: number; readonly total: number } | undefined>;
  /** Rows of the transcript, compacted ones too, and whole outputs that hold every word; newest first. */
  search(words: readonly string[], limit: number): Promise<HistorySearch>;
  /** Stores bytes by their SHA-256; the same bytes are stored once. */
  saveBlob(bytes: Uint8Array, mediaType: string): Promise<FilePart>;
}

export interface HistorySearch {
  readonly hits: readonly {
    readonly sequence: number;
    readonly step: number;
    readonly role: string;
    readonly excerpt: string;
    /** Where the words stand in a whole output; absent if they stand in the message itself. */
    readonly output?: { readonly handle: string; readonly offset: number };
  }[];
  /** The oldest whole outputs, if there is more of them than one search goes through. */
  readonly skippedOutputs: number;
}

/** A tool as the model sees it. */
export interface ToolSpec {
  readonly name: string;
  readonly description: string;
  /** JSON schema of the input. */
  readonly inputSchema: Record<string, unknown>;
  /** Of an MCP server or the operator: if the provider refuses it, it is asked without. */
  readonly isForeign?: true;
}
