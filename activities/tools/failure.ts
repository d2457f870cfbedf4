/** How a tool says what went wrong. */
import type { ToolResult } from "./tool.ts";

/** A failure of the tool's own, thrown deep inside it; `invokeTool` turns it into a result for the model. */
export class ToolFailure extends Error {
  override readonly name = "ToolFailure";
}

/**
 * Abort reason that stops the waiting and leaves the command running: the worker shuts down or hands over, and the
 * next attempt takes the command up again. Any other reason ends the command.
 */
export class LeaveRunning extends Error {
  override readonly name = "LeaveRunning";
}

/** A failure as a result: what happened, the limit, what to do next. */
export function failure(text: string): ToolResult {
  return { text, isError: true };
}

/** A sandbox's own words as a sentence, with what to do next behind it. */
export function withHint(message: string, hint: string): string {
  return `${message}${/[.!?]$/.test(message) ? "" : "."} ${hint}`;
}
