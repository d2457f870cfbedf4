/**
 * `longhaul/tools`: the operator's own tools, which a worker loads from the file that LONGHAUL_TOOLS names. See
 * docs/tools.md.
 */
import type { z } from "zod";

/** The model's result: a text, or a text with `isError` for a failure. */
export type ToolAnswer = string | { readonly text: string; readonly isError?: boolean };

export interface ToolDefinition<Input extends z.ZodType = z.ZodType> {
  /**
   * 1 to 64 letters, digits, `_` and `-`, starting with a letter, without `__`; must not be the name of one of
   * Longhaul's tools.
   */
  readonly name: string;
  /** The description that the model reads: what the tool does, its limits, when to use another. */
  readonly description: string;
  /** A zod 4 schema of an object: the model sees it, and `run` gets the parsed input. */
  readonly input: Input;
  /** The tool changes nothing anywhere: it may run again after a crash, and while a session plans. Default: false. */
  readonly readOnly?: boolean;
  /** Time in ms after which `signal` is aborted and the call ends. Default 60,000, at most 600,000. */
  readonly timeoutMs?: number;
  /** Runs in the worker's process. An exception is reported to the model as the call's failure. */
  run(input: z.output<Input>, context: ToolRunContext): ToolAnswer | Promise<ToolAnswer>;
}

export interface ToolRunContext {
  readonly sessionId: string;
  /** Identifies this call among all calls of all sessions, the same for each attempt: for services that accept such a key. */
  readonly idempotencyKey: string;
  /** Aborted if a person stops the call, its time is up, or the worker ends. */
  readonly signal: AbortSignal;
  /** The session's sandbox; opened on first use. */
  readonly sandbox: ToolSandbox;
}

/** Paths are relative to the workspace and cannot leave it. Each method throws an error worded for the model. */
export interface ToolSandbox {
  /** Runs a line of bash in the workspace. `output`: both streams, at most 1 MiB; `exitCode`: null if a signal ended it. */
  exec(command: string): Promise<{ readonly output: string; readonly exitCode: number | null }>;
  /** Reads a text file, at most 1 MiB of it. */
  readFile(path: string): Promise<string>;
  writeFile(path: string, text: string): Promise<void>;
}

/** Infers the type of `run`'s input from the schema. */
export function defineTool<Input extends z.ZodType>(tool: ToolDefinition<Input>): ToolDefinition {
  return tool;
}
