/** The view: what the model gets to see of the transcript, well-formed whatever happened. Pure: no clock, no I/O. */
import type { Message, StoredMessage, ToolResultPart } from "./message.ts";
import { repair, type Mend } from "./repair.ts";
import { estimateMessage } from "./tokens.ts";

/** Stands in the place of a pruned result. Source: requirement 4.3. */
export const PRUNED_TEXT = "[Old tool result content cleared]";

export interface View {
  readonly messages: readonly Message[];
  /** Estimated tokens of each message, in the same order. */
  readonly sizes: readonly number[];
  /** Their sum. */
  readonly tokens: number;
  /** What had to be put right; empty in a sound transcript. */
  readonly mended: readonly Mend[];
}

/** Handle under which a call's whole output is read again: `s<step>c<index>`, with `e<epoch>` before it after a reset. */
export function handleOf(row: Pick<StoredMessage, "slot" | "step" | "epoch">): string | undefined {
  const index = /^tool:(\d+)$/.exec(row.slot)?.[1];
  if (index === undefined) return undefined;
  const { epoch = 1 } = row;
  return `${epoch === 1 ? "" : `e${epoch}`}s${row.step}c${index}`;
}

/** A row's message as the model sees it: a pruned result shows a placeholder with its handle, and no files. */
export function shownMessage(row: StoredMessage): Message {
  if (row.role !== "tool") return messageOf(row);
  return { role: "tool", content: [row.prunedStep === undefined ? row.content[0] : prunedResult(row)] };
}

function messageOf(row: Exclude<StoredMessage, { role: "tool" }>): Message {
  return row.role === "user"
    ? { role: "user", content: row.content }
    : { role: "assistant", content: row.content };
}

function prunedResult(row: Extract<StoredMessage, { role: "tool" }>): ToolResultPart {
  const { files: _hidden, ...rest } = row.content[0];
  const handle = handleOf(row);
  return {
    ...rest,
    text: handle === undefined ? PRUNED_TEXT : `${PRUNED_TEXT} read_output handle="${handle}"`,
  };
}

/** Tokens of a row as the model sees it. */
export function shownTokens(row: StoredMessage): number {
  return row.prunedStep === undefined ? row.tokens : estimateMessage(shownMessage(row));
}

/**
 * The messages of a request.
 * @param rows the live line without compacted rows, in the view's order (by position)
 */
export function buildView(rows: readonly StoredMessage[]): View {
  const before = rows.map(shownMessage);
  const known = new Map(rows.map((row, index) => [before[index], shownTokens(row)]));
  const { messages, mended } = repair(before);
  const sizes = messages.map((message) => known.get(message) ?? estimateMessage(message));
  return { messages, sizes, tokens: sizes.reduce((sum, size) => sum + size, 0), mended };
}
