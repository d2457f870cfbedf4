/**
 * The view: what the model gets to see of the transcript, well-formed whatever happened. Any sequence of messages is made one that a
 * provider accepts (invariant 4): the proof before every request, which in a sound transcript finds nothing to do. It never changes
 * what is stored.
 */
import type {
  Message,
  StoredMessage,
  ToolResultPart,
  AssistantPart,
  ToolCallPart,
  UserPart,
} from "../contract/message.ts";
import { estimateMessage } from "../contract/request-size.ts";
import { truncateText, cutChars } from "../text/cut.ts";

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
  const texts = row.content.map((part) =>
    part.type === "text" ? part.text : `[${part.filename ?? "a file"} (${part.mediaType}) is left out]`,
  );
  const cut = truncateText(texts.join("\n"), {
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
  let digits = 0;
  for (let rest = count; rest >= 1; rest /= 10) digits += 1;
  return digits;
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

/** One repair; `toolCallId` is the id before it. */
interface Repair {
  readonly kind:
    | "missing-result"
    | "orphan-result"
    | "duplicate-result"
    | "moved-result"
    | "duplicate-call"
    | "empty-part"
    | "empty-message";
  readonly toolCallId?: string;
}

export interface Repaired {
  readonly messages: readonly Message[];
  readonly repairs: readonly Repair[];
}

/** What the model reads if a call has no result. */
export const MISSING_RESULT_TEXT =
  "[interrupted: no result was recorded. It may have had effects; inspect before you repeat it.]";

/** Providers refuse longer ones. Source: OpenAI, `call_id` at most 64 characters. */
const MAX_CALL_ID_CHARS = 64;

type ToolMessage = Extract<Message, { role: "tool" }>;

/**
 * The messages with exactly one result per call, in call order, directly after the assistant message that asked.
 * A result goes to the nearest unanswered call of its id before it, else to the next one after it. Calls without a
 * result get an `interrupted` one under the call's own id; orphans, duplicates and empty messages are dropped;
 * repeated call ids get a suffix. Well-formed messages are returned as the same array.
 */
export function repair(messages: readonly Message[]): Repaired {
  if (findFault(messages) === undefined) return { messages, repairs: [] };
  const repairs: Repair[] = [];
  const results = matchResults(messages, repairs);
  const ids = new UniqueIds(messages);
  const out: Message[] = [];
  for (const [index, message] of messages.entries()) {
    if (message.role === "tool") continue;
    const whole = message.role === "user" ? userWithoutEmpty(message.content) : usableParts(message.content);
    if (whole.length < message.content.length) repairs.push({ kind: "empty-part" });
    if (whole.length === 0) {
      repairs.push({ kind: "empty-message" });
      continue;
    }
    if (message.role === "user") {
      out.push({ role: "user", content: whole as readonly UserPart[] });
      continue;
    }
    const answers: ToolMessage[] = [];
    const content = (whole as readonly AssistantPart[]).map((part) => {
      if (part.type !== "tool-call") return part;
      const storedResult = results.get(part);
      const id = ids.take(part.toolCallId);
      if (id !== part.toolCallId) repairs.push({ kind: "duplicate-call", toolCallId: part.toolCallId });
      if (storedResult === undefined) repairs.push({ kind: "missing-result", toolCallId: part.toolCallId });
      else if (storedResult.index !== index + answers.length + 1) {
        repairs.push({ kind: "moved-result", toolCallId: part.toolCallId });
      }
      answers.push({ role: "tool", content: [answerTo(part, id, storedResult?.result)] });
      return id === part.toolCallId ? part : { ...part, toolCallId: id };
    });
    out.push({ role: "assistant", content }, ...answers);
  }
  return { messages: out, repairs };
}

function answerTo(
  call: ToolCallPart,
  toolCallId: string,
  result: ToolResultPart | undefined,
): ToolResultPart {
  const { toolName } = call;
  if (result !== undefined) return { ...result, toolCallId, toolName };
  return { type: "tool-result", toolCallId, toolName, outcome: "interrupted", text: MISSING_RESULT_TEXT };
}

interface FoundResult {
  readonly index: number;
  readonly result: ToolResultPart;
}

/** Which result belongs to which call (by the part itself: ids may repeat). */
function matchResults(messages: readonly Message[], repairs: Repair[]): Map<ToolCallPart, FoundResult> {
  const matched = new Map<ToolCallPart, FoundResult>();
  const open = new Map<string, { readonly index: number; readonly part: ToolCallPart }[]>();
  const early = new Map<string, FoundResult[]>();
  for (const [index, message] of messages.entries()) {
    if (message.role === "assistant") {
      for (const part of message.content) {
        if (part.type !== "tool-call") continue;
        const before = early.get(part.toolCallId)?.shift();
        const waiting = open.get(part.toolCallId) ?? [];
        open.set(part.toolCallId, waiting);
        if (before === undefined) waiting.push({ index, part });
        else matched.set(part, before);
      }
    } else if (message.role === "tool") {
      const [result] = message.content;
      const waiting = open.get(result.toolCallId);
      if (waiting === undefined) {
        // No such call so far: it may still come, else this is an orphan.
        const list = early.get(result.toolCallId) ?? [];
        early.set(result.toolCallId, [...list, { index, result }]);
        continue;
      }
      // The result belongs to the newest message with an open call of this id; within it, in call order.
      const newest = waiting.findIndex((call) => call.index === waiting.at(-1)?.index);
      const [call] = newest === -1 ? [] : waiting.splice(newest, 1);
      if (call === undefined) repairs.push({ kind: "duplicate-result", toolCallId: result.toolCallId });
      else matched.set(call.part, { index, result });
    }
  }
  for (const [toolCallId, rest] of early) {
    for (let left = rest.length; left > 0; left--) repairs.push({ kind: "orphan-result", toolCallId });
  }
  return matched;
}

/** Gives each id once: the first keeps it, the next get a suffix that no other has. */
class UniqueIds {
  private readonly given = new Set<string>();
  private readonly all: ReadonlySet<string>;

  constructor(messages: readonly Message[]) {
    this.all = new Set(
      messages.flatMap((message) =>
        message.role === "assistant"
          ? message.content.flatMap((part) => (part.type === "tool-call" ? [part.toolCallId] : []))
          : [],
      ),
    );
  }

  take(id: string): string {
    let unique = id;
    for (let count = 2; this.given.has(unique) || (unique !== id && this.all.has(unique)); count++) {
      const suffix = `_${count}`;
      unique = cutChars(id, MAX_CALL_ID_CHARS - suffix.length) + suffix;
    }
    this.given.add(unique);
    return unique;
  }
}

function userWithoutEmpty(content: readonly UserPart[]): readonly UserPart[] {
  return content.filter((part) => part.type === "file" || part.text.trim() !== "");
}

/** Without empty texts, and without reasoning that nothing follows: providers refuse it alone. */
function usableParts(content: readonly AssistantPart[]): readonly AssistantPart[] {
  const full = content.filter((part) => {
    if (part.type === "text") return part.text.trim() !== "";
    return part.type === "tool-call" || part.text !== "" || part.providerOptions !== undefined;
  });
  const last = full.findLastIndex((part) => part.type !== "reasoning");
  return full.slice(0, last + 1);
}

/** What a provider would refuse in these messages, in words; undefined if they are well-formed. */
export function findFault(messages: readonly Message[]): string | undefined {
  const ids = new Set<string>();
  let due: readonly ToolCallPart[] = [];
  let answered = 0;
  for (const message of messages) {
    if (message.role === "tool") {
      const [{ toolCallId, toolName }] = message.content;
      const call = due[answered++];
      if (call === undefined) return `result ${toolCallId} answers no call`;
      if (call.toolCallId !== toolCallId)
        return `result ${toolCallId} stands where ${call.toolCallId} is due`;
      if (call.toolName !== toolName) return `result ${toolCallId} names another tool`;
      continue;
    }
    if (answered < due.length) return `call ${due[answered]?.toolCallId} has no result`;
    due = [];
    answered = 0;
    if (message.role === "user") {
      const { content } = message;
      if (content.length === 0) return "empty user message";
      if (userWithoutEmpty(content).length < content.length) return "empty text part";
      continue;
    }
    if (message.content.length === 0) return "empty assistant message";
    if (usableParts(message.content).length < message.content.length) return "empty or dangling part";
    due = message.content.filter((part) => part.type === "tool-call");
    for (const { toolCallId } of due) {
      if (ids.has(toolCallId)) return `call id ${toolCallId} is used twice`;
      ids.add(toolCallId);
    }
  }
  return answered < due.length ? `call ${due[answered]?.toolCallId} has no result` : undefined;
}
