/** What a tool is: declared once, one file each. `run-tool.ts` validates, runs, truncates, masks and stores. */
import type { z } from "zod";
import type { FilePart } from "../contract/message.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import type { ToolLimits, SessionMemory } from "../contract/tools.ts";

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
  readonly onProgress: (bytes: number, lastLine: string | undefined) => void;
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

/** A tool among others. Its schema alone knows the input's type from here on, and `invokeTool` always asks it. */
export function defineTool<Input>(tool: Tool<Input>): Tool {
  return tool as unknown as Tool;
}
