/** The view: what the model gets to see of the transcript, well-formed whatever happened. */
import type { Message, StoredMessage, ToolResultPart } from "../contract/message.ts";
import { repair, type Repair } from "./repair.ts";
import { estimateMessage } from "../contract/request-size.ts";
import { truncateText } from "../text/cut.ts";

/** Replaces a pruned result. Source: requirement 4.3. */
export const PRUNED_TEXT = "[Old tool result content cleared]";

/** Characters that stay of a person's message that was too large for the window. */
const SHOWN_CHARS = 4_000;

/** Follows a summary that is the view's last message: a request must end with something that the model answers. */
export const GO_ON_TEXT = "Continue with the task from where the summary ends.";

export interface View {
  readonly messages: readonly Message[];
  /** Estimated tokens of each message, in the same order. */
  readonly sizes: readonly number[];
  /** Their sum. */
  readonly tokens: number;
  /** What had to be put right; empty in a sound transcript. */
  readonly repairs: readonly Repair[];
}

/** Handle under which a call's whole output is read again: `s<step>c<index>`, with `e<epoch>` before it after a reset. */
export function toHandle(row: Pick<StoredMessage, "slot" | "step" | "epoch">): string | undefined {
  const index = /^tool:(\d+)$/.exec(row.slot)?.[1];
  if (index === undefined) return undefined;
  const { epoch = 1 } = row;
  return `${epoch === 1 ? "" : `e${epoch}`}s${row.step}c${index}`;
}

/** Handle of a person's message that is shown cut: `m<sequence>`. */
function messageHandle(sequence: number): string {
  return `m${sequence}`;
}

/**
 * A row's message as the model sees it: a pruned result shows a placeholder with its handle, a message of a person its
 * head and tail, and neither shows files.
 */
export function shownMessage(row: StoredMessage): Message {
  if (row.role === "user" && row.prunedStep !== undefined) return cutMessage(row);
  if (row.role !== "tool") return messageOf(row);
  return { role: "tool", content: [row.prunedStep === undefined ? row.content[0] : prunedResult(row)] };
}

function messageOf(row: Exclude<StoredMessage, { role: "tool" }>): Message {
  return row.role === "user"
    ? { role: "user", content: row.content }
    : { role: "assistant", content: row.content };
}

function cutMessage(row: Extract<StoredMessage, { role: "user" }>): Message {
  const words = row.content.map((part) =>
    part.type === "text" ? part.text : `[${part.filename ?? "a file"} (${part.mediaType}) is left out]`,
  );
  const cut = truncateText(words.join("\n"), {
    maxChars: SHOWN_CHARS,
    handle: messageHandle(row.sequence),
  });
  return { role: "user", content: [{ type: "text", text: cut.text }] };
}

function prunedResult(row: Extract<StoredMessage, { role: "tool" }>): ToolResultPart {
  const { files: _hidden, ...rest } = row.content[0];
  const handle = toHandle(row);
  return {
    ...rest,
    text: handle === undefined ? PRUNED_TEXT : `${PRUNED_TEXT} read_output handle="${handle}"`,
  };
}

/** Tokens of a row as the model sees it. */
export function shownTokens(row: StoredMessage): number {
  return row.prunedStep === undefined ? row.tokens : hiddenTokens(row);
}

/** Tokens of a row as the model would see it if it were hidden. */
function hiddenTokens(row: StoredMessage): number {
  if (row.role === "assistant") return row.tokens;
  if (row.role === "user") return estimateMessage(cutMessage(row));
  // Placeholders differ only in their handles' digits, and only the number of digits changes the tokens.
  const { epoch = 1, step, slot } = row;
  const shape = (figures(epoch === 1 ? 0 : epoch) * 32 + figures(step)) * 32 + slot.length;
  const known = placeholders.get(shape);
  if (known !== undefined) return known;
  const tokens = estimateMessage({ role: "tool", content: [prunedResult(row)] });
  placeholders.set(shape, tokens);
  return tokens;
}

const placeholders = new Map<number, number>();

function figures(count: number): number {
  let found = 0;
  for (let rest = count; rest >= 1; rest /= 10) found += 1;
  return found;
}

/** Tokens that hiding a row saves. */
export function tokensSaved(row: StoredMessage): number {
  return row.prunedStep === undefined ? row.tokens - hiddenTokens(row) : 0;
}

function user(text: string): Message {
  return { role: "user", content: [{ type: "text", text }] };
}

/**
 * The messages of a request.
 * @param rows the live line without compacted rows, in the view's order (by position)
 */
export function buildView(rows: readonly StoredMessage[]): View {
  const before = rows.map(shownMessage);
  if (rows.at(-1)?.kind === "summary") before.push(user(GO_ON_TEXT));
  const known = new Map(rows.map((row, index) => [before[index], shownTokens(row)] as const));
  const { messages, repairs } = repair(before);
  const sizes = messages.map((message) => known.get(message) ?? estimateMessage(message));
  return { messages, sizes, tokens: sizes.reduce((sum, size) => sum + size, 0), repairs };
}
