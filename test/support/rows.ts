/** Builders of transcript rows for the context tests. */
import type { Message, MessageKind, StoredMessage, ToolOutcome } from "../../activities/contract/message.ts";
import { estimateMessage } from "../../activities/contract/request-size.ts";

export function user(text: string): Message {
  return { role: "user", content: [{ type: "text", text }] };
}

export function says(text: string): Message {
  return { role: "assistant", content: [{ type: "text", text }] };
}

export interface CallSketch {
  readonly id: string;
  readonly name?: string;
  readonly input?: unknown;
}

export function calls(text: string, ...sketches: readonly (string | CallSketch)[]): Message {
  return {
    role: "assistant",
    content: [
      ...(text === "" ? [] : [{ type: "text" as const, text }]),
      ...sketches.map((sketch) => {
        const call = typeof sketch === "string" ? { id: sketch } : sketch;
        return {
          type: "tool-call" as const,
          toolCallId: call.id,
          toolName: call.name ?? "bash",
          input: call.input ?? { command: "ls" },
        };
      }),
    ],
  };
}

export function result(
  id: string,
  text = "ok",
  outcome: ToolOutcome = "completed",
  toolName = "bash",
): Message {
  return { role: "tool", content: [{ type: "tool-result", toolCallId: id, toolName, outcome, text }] };
}

export type RowExtra = Partial<
  Pick<StoredMessage, "sequence" | "position" | "step" | "slot" | "kind" | "tokens" | "prunedStep" | "usage">
>;

/**
 * Rows of a transcript: sequences from `from`, a new step at each assistant message (a user message belongs to the
 * step that answers it), slots and kinds as the store gives them. The first user message is the task.
 */
export function rowsOf(
  messages: readonly (Message | [Message, RowExtra])[],
  from = 1,
  step = 0,
): StoredMessage[] {
  let index = 0;
  return messages.map((entry, position) => {
    const [message, extra] = Array.isArray(entry) ? (entry as [Message, RowExtra]) : [entry, {}];
    const sequence = from + position;
    if (message.role === "assistant") {
      step++;
      index = 0;
    }
    const slot = message.role === "tool" ? `tool:${index++}` : message.role;
    const kind = kindOf(message.role, sequence);
    return {
      ...message,
      sequence,
      position: sequence,
      step: message.role === "user" ? step + 1 : step,
      slot,
      kind,
      tokens: estimateMessage(message),
      prunedStep: undefined,
      ...extra,
    } as StoredMessage;
  });
}

function kindOf(role: Message["role"], sequence: number): MessageKind {
  if (role === "tool") return "tool";
  if (role === "assistant") return "answer";
  return sequence === 1 ? "task" : "guidance";
}
