/** How a tool reports what went wrong. */
import type { FileAnswer } from "../sandbox/sandbox.ts";
import type { ToolResult } from "./tool.ts";

/** A tool's own failure, thrown deep inside it; `invokeTool` turns it into a result for the model. */
export class ToolFailure extends Error {
  override readonly name = "ToolFailure";
}

/**
 * Abort reason that stops waiting but leaves the command running: the worker shuts down or hands over, and the next
 * attempt resumes waiting. Any other reason ends the command.
 */
export class LeaveRunning extends Error {
  override readonly name = "LeaveRunning";
}

/** A failure as a result: what happened, the limit, what to do next. */
export function failure(text: string): ToolResult {
  return { text, isError: true };
}

type Refusal = Extract<FileAnswer<unknown>, { readonly ok: false }>;

/**
 * Unwraps the sandbox's answer.
 * @param hints what to do next, by the reason of a refusal
 * @throws ToolFailure for a refusal, with the sandbox's message and the hint
 */
export function accepted<T>(
  answer: FileAnswer<T>,
  hints: Partial<Record<Refusal["reason"], string>> = {},
): T {
  if (answer.ok) return answer;
  const { message, reason } = answer;
  const hint = hints[reason];
  if (hint === undefined) throw new ToolFailure(message);
  throw new ToolFailure(`${message}${/[.!?]$/.test(message) ? "" : "."} ${hint}`);
}
