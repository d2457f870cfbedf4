/** What a tool is: declared once, one file each. `run-tool.ts` validates, runs, truncates, masks and stores. */
import type { z } from "zod";
import type { FilePart } from "../context/message.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";

export interface Tool<Input = unknown> {
  readonly name: string;
  /** What the model reads: what it does, its limits, when to take another. */
  readonly description: string;
  readonly input: z.ZodType<Input>;
  /** Read-only tools simply run again after a crash; all others go through the ledger and never do. */
  readonly readOnly: boolean;
  /** At most 60 characters for people: a command's first line, a path. */
  readonly about: (input: Input) => string;
  /**
   * Does it. What goes wrong is a result with `isError`, in words that help the model on.
   * Contract: throws only for what is not the tool's own failure (SandboxLost, the abort reason, a lost database).
   */
  readonly run: (input: Input, context: ToolContext) => Promise<ToolResult>;
}

/** Limits of one tool; `longhaul.yaml`'s `tools.<name>` overrides those that it heeds. */
export interface ToolLimits {
  /** Longest a program may run that the call starts in the sandbox, where the input does not say otherwise. */
  readonly timeoutMs: number;
  /** Most that the input may ask for. */
  readonly maxTimeoutMs: number;
  /** Characters of the result that the model sees. */
  readonly maxChars: number;
  readonly maxLines: number;
  readonly maxLineChars: number;
  readonly maxMatches: number;
}

export interface ToolContext {
  /** Stable id of this call within the session (`s12c0`): names the supervised command and the output's handle. */
  readonly callKey: string;
  /** True when an earlier attempt may have begun it: look before doing. */
  readonly resumed: boolean;
  /** The container that the session had when the call was first claimed, where one was known. */
  readonly claimedIn?: string | undefined;
  readonly sandbox: () => Promise<Sandbox>;
  readonly limits: ToolLimits;
  readonly signal: AbortSignal;
  /** What the session remembers: whole outputs and the transcript, for `read_output`, `search_history`, `todo`. */
  readonly memory: SessionMemory;
  /** A page of a text, masked by what the whole text shows: see the sanitizer's `maskWindow`. */
  readonly maskWindow: (text: string, from: number, to: number) => string;
  /** Live note for watchers and the Web UI: at most 200 characters. */
  readonly onProgress: (note: string) => void;
}

export interface SessionMemory {
  /** Characters of a whole output and where the next page begins; undefined where there is no such handle. */
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
    /** Where the words stand in a whole output; absent where they stand in the message itself. */
    readonly output?: { readonly handle: string; readonly offset: number };
  }[];
  /** The oldest whole outputs, where there is more of them than one search goes through. */
  readonly skippedOutputs: number;
}

export interface ToolResult {
  /** What the model is to see, before truncation. For a very long output: its head, the middle left out. */
  readonly text: string;
  readonly isError?: boolean;
  readonly files?: readonly FilePart[];
  readonly exitCode?: number;
  /** The process was ended by the person's cancel or interrupt. */
  readonly interrupted?: boolean;
  /** It was started, and nobody can say how it ended. */
  readonly unknown?: boolean;
  /** The whole output where `text` is only a part of it; it is stored behind the call's handle. */
  readonly whole?: { readonly chars: number; readonly pieces: () => AsyncIterable<string> };
}

/** Keeps the input's type while the registry holds tools of all kinds. */
export function defineTool<Input>(tool: Tool<Input>): Tool<Input> {
  return tool;
}
