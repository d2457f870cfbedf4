/** The queue of guidance: accept, tell duplicates, count, drain. Pure. */
import { refusalOf } from "../activities/context/coalesce.ts";
import type { UserPart } from "../activities/context/message.ts";
import type { Guidance } from "../activities/contract.ts";
import type { GuidanceMessage } from "./messages.ts";

export interface Inbox {
  /** Waiting, oldest first. */
  queue: Guidance[];
  /** How many wait in Postgres, before those in the queue. */
  parked: number;
  /** Client ids seen lately, oldest first. */
  seen: Set<string>;
}

/** Waiting messages of more characters than this are parked: an activity's input stays far below the 64 KB guard. */
export const MAX_QUEUE_CHARS = 20_000;
/** Ids remembered for telling duplicates; older ones are told by Postgres, where they were parked or delivered. */
const MAX_SEEN_IDS = 1_000;
/** An update can be refused, a signal cannot. Source: requirement 4.1. */
export const MAX_WAITING = 100;

export function createInbox(queue: readonly Guidance[], parked: number, seen: readonly string[]): Inbox {
  return { queue: [...queue], parked, seen: new Set(seen) };
}

/** What was sent, as parts: a bare string counts as text. Undefined for what is no message at all. */
export function partsOf(message: unknown): readonly UserPart[] | undefined {
  if (typeof message === "string") return [{ type: "text", text: message }];
  if (typeof message !== "object" || message === null) return undefined;
  const { text, parts } = message as GuidanceMessage;
  if (typeof text === "string")
    return [{ type: "text", text }, ...(Array.isArray(parts) ? parts.filter(isPart) : [])];
  return Array.isArray(parts) && parts.every(isPart) ? parts : undefined;
}

function isPart(part: unknown): part is UserPart {
  if (typeof part !== "object" || part === null || !("type" in part)) return false;
  if (part.type === "text") return "text" in part && typeof part.text === "string";
  return (
    part.type === "file" &&
    "data" in part &&
    typeof part.data === "string" &&
    "mediaType" in part &&
    typeof part.mediaType === "string"
  );
}

/** The sender's id where it is one, at most 200 characters. */
export function idOf(message: unknown): string | undefined {
  if (typeof message !== "object" || message === null || !("id" in message)) return undefined;
  return typeof message.id === "string" && message.id !== "" ? message.id.slice(0, 200) : undefined;
}

/** Why a message is not taken, in words for its sender; undefined where it is. */
export function refusal(inbox: Inbox, message: unknown): string | undefined {
  const parts = partsOf(message);
  if (!parts) return 'Not a message: send {"text": "…"} or a plain string.';
  const id = idOf(message);
  if (id !== undefined && inbox.seen.has(id)) return undefined;
  if (waiting(inbox) >= MAX_WAITING)
    return `${MAX_WAITING} messages are waiting already; this one was not queued. Try again when the agent has read them.`;
  return refusalOf(parts);
}

/** Puts a message in the queue. @returns false for an id that was seen before */
export function accept(inbox: Inbox, item: Guidance): boolean {
  if (inbox.seen.has(item.id)) return false;
  inbox.seen.add(item.id);
  if (inbox.seen.size > MAX_SEEN_IDS) {
    const [oldest] = inbox.seen;
    if (oldest !== undefined) inbox.seen.delete(oldest);
  }
  inbox.queue.push(item);
  return true;
}

export function waiting(inbox: Inbox): number {
  return inbox.queue.length + inbox.parked;
}

/** Splits what is too much to carry into lists that are not, oldest first; undefined while the queue is small. */
export function tooMuch(inbox: Inbox): Guidance[][] | undefined {
  if (inbox.queue.length <= MAX_WAITING && charsOf(inbox.queue) <= MAX_QUEUE_CHARS) return undefined;
  const lists: Guidance[][] = [];
  let chars = 0;
  for (const item of inbox.queue) {
    const size = charsOf([item]);
    const list = lists.at(-1);
    if (!list || chars + size > MAX_QUEUE_CHARS) {
      lists.push([item]);
      chars = size;
    } else {
      list.push(item);
      chars += size;
    }
  }
  return lists;
}

function charsOf(items: readonly Guidance[]): number {
  return items.reduce(
    (sum, { id, parts }) =>
      parts.reduce(
        (chars, part) => chars + (part.type === "text" ? part.text.length : part.data.length) + 40,
        sum + id.length + 60,
      ),
    0,
  );
}

/** Takes all that wait. */
export function drain(inbox: Inbox): { guidance: Guidance[]; parked: boolean } {
  const drained = { guidance: inbox.queue, parked: inbox.parked > 0 };
  inbox.queue = [];
  inbox.parked = 0;
  return drained;
}
