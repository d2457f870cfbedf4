/** `longhaul/tools`: tools of the operator's own, which a worker loads from the file that LONGHAUL_TOOLS names. See docs/tools.md. */
import type { z } from "zod";

/** What the model reads: a text, or a text with `isError` for a failure. */
export type ToolAnswer = string | { readonly text: string; readonly isError?: boolean };

export interface ToolDefinition<Input extends z.ZodType = z.ZodType> {
  /** 1 to 64 letters, digits, `_` and `-`, beginning with a letter, without `__`; none of Longhaul's own tools has it. */
  readonly name: string;
  /** What the model reads: what it does, its limits, when to take another. */
  readonly description: string;
  /** A schema of zod 4 for an object: the model is shown it, and `run` gets what it makes of the input. */
  readonly input: Input;
  /** It changes nothing anywhere: it may run again after a crash, and while a session plans. Default: false. */
  readonly readOnly?: boolean;
  /** Time in ms after which `signal` is aborted and the call ends. Default 60,000, at most 600,000. */
  readonly timeoutMs?: number;
  /** Runs in the worker's process. An exception is reported to the model as the call's failure. */
  run(input: z.output<Input>, context: ToolRunContext): ToolAnswer | Promise<ToolAnswer>;
}

export interface ToolRunContext {
  readonly sessionId: string;
  /** Names this call among all calls of all sessions, the same for each attempt: for services that take such a key. */
  readonly idempotencyKey: string;
  /** Aborted if a person stops the call, its time is over, or the worker ends. */
  readonly signal: AbortSignal;
  /** The session's sandbox; it is opened when it is first used. */
  readonly sandbox: ToolSandbox;
}

/** Paths are relative to the workspace, and do not leave it. Each method throws in words for the model. */
export interface ToolSandbox {
  /** Runs a line of bash in the workspace. `output`: both streams, at most 1 MiB; `exitCode`: null if a signal ended it. */
  exec(command: string): Promise<{ readonly output: string; readonly exitCode: number | null }>;
  /** At most 1 MiB of a text file. */
  readFile(path: string): Promise<string>;
  writeFile(path: string, text: string): Promise<void>;
}

/** Types `run`'s input by the schema. */
export function defineTool<Input extends z.ZodType>(tool: ToolDefinition<Input>): ToolDefinition {
  return tool;
}
