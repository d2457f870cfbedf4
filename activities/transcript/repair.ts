/**
 * Makes any sequence of messages one that a provider accepts (invariant 4). The proof before every request: in a
 * sound transcript it finds nothing to do. It never changes what is stored.
 */
import { cutChars } from "../text/cut.ts";
import type { AssistantPart, Message, ToolCallPart, ToolResultPart, UserPart } from "../contract/message.ts";

/** One repair; `toolCallId` is the id before it. */
export interface Repair {
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
      const found = results.get(part);
      const id = ids.take(part.toolCallId);
      if (id !== part.toolCallId) repairs.push({ kind: "duplicate-call", toolCallId: part.toolCallId });
      if (found === undefined) repairs.push({ kind: "missing-result", toolCallId: part.toolCallId });
      else if (found.index !== index + answers.length + 1) {
        repairs.push({ kind: "moved-result", toolCallId: part.toolCallId });
      }
      answers.push({ role: "tool", content: [answerTo(part, id, found?.result)] });
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
